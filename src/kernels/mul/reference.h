#pragma once
// The slow, obvious form in f64.
#include <cstdint>
#include <span>
#include <vector>

namespace doppler::kernels {

/// a [rows, width] times b [rows, width] or [rows, 1].
std::vector<double> mul_reference(std::span<const float> a, std::span<const float> b, uint32_t rows);

}  // namespace doppler::kernels
