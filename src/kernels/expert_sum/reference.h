#pragma once
// The slow, obvious form in f64.
#include <cstdint>
#include <span>
#include <vector>

namespace doppler::kernels {

/// in [rows, top_k * width], routes [rows, 2 * top_k] -> [rows, width].
std::vector<double> expert_sum_reference(std::span<const float> in, std::span<const float> routes,
                                         uint32_t rows, uint32_t width, uint32_t top_k);

}  // namespace doppler::kernels
