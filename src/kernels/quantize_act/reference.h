#pragma once
// The slow, obvious form in f64.
#include <cstdint>
#include <span>
#include <vector>

namespace doppler::kernels {

/// What rows [rows, columns] become when quantised per 32 columns and read back: s * q.
std::vector<double> quantize_act_reference(std::span<const float> x, uint32_t rows, uint32_t columns);

}  // namespace doppler::kernels
