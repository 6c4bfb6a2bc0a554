#pragma once
// The slow, obvious form in f64.
#include <span>
#include <vector>

namespace doppler::kernels {

std::vector<double> add_reference(std::span<const float> a, std::span<const float> b);

}  // namespace doppler::kernels
