#pragma once
// The slow, obvious form in f64.
#include <cstdint>
#include <span>
#include <vector>

#include "kernels/gated_act/gated_act.h"

namespace doppler::kernels {

/// in [rows, 2 * width]: gate, then up. Gives [rows, width].
std::vector<double> gated_act_reference(std::span<const float> in, uint32_t rows, uint32_t width, Gate gate);

}  // namespace doppler::kernels
