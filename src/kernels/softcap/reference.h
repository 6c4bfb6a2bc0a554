#pragma once
// The slow, obvious form in f64.
#include <span>
#include <vector>

namespace doppler::kernels {

std::vector<double> softcap_reference(std::span<const float> x, double cap);

}  // namespace doppler::kernels
