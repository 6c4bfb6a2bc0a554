#pragma once
// The slow, obvious form in f64.
#include <cstdint>
#include <span>
#include <vector>

namespace doppler::kernels {

/// Per group of weight.size() columns: x * rsqrt(mean(x^2) + eps) * (weight + weight_offset). x is whole
/// groups.
std::vector<double> rms_norm_reference(std::span<const float> x, std::span<const float> weight, double eps,
                                       double weight_offset);

}  // namespace doppler::kernels
