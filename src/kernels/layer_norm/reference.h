#pragma once
// The slow, obvious form in f64.
#include <span>
#include <vector>

namespace doppler::kernels {

/// Rows of weight.size() columns: (x - mean) / sqrt(variance + eps) * weight + bias.
std::vector<double> layer_norm_reference(std::span<const float> x, std::span<const float> weight,
                                         std::span<const float> bias, double eps);

}  // namespace doppler::kernels
