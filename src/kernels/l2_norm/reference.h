#pragma once
// The slow, obvious form in f64.
#include <cstdint>
#include <span>
#include <vector>

namespace doppler::kernels {

/// x [rows, width]: each row divided by max(|row|, eps).
std::vector<double> l2_norm_reference(std::span<const float> x, uint32_t rows, double eps);

}  // namespace doppler::kernels
