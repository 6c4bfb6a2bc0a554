#pragma once
// The slow, obvious form in f64.
#include <cstdint>
#include <span>
#include <vector>

namespace doppler::kernels {

/// x [rows, width] gives [width].
std::vector<double> mean_rows_reference(std::span<const float> x, uint32_t rows);

}  // namespace doppler::kernels
