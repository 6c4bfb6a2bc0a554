#pragma once
// The slow, obvious form in f64.
#include <cstdint>
#include <span>
#include <vector>

namespace doppler::kernels {

/// out[m, n] = sum over k of x[m, k] * w[n, k] + bias[n]. x [rows, columns], w [w_rows, columns]
/// (dequantised); bias may be empty.
std::vector<double> linear_reference(std::span<const float> x, std::span<const float> w,
                                     std::span<const float> bias, uint32_t rows, uint32_t columns,
                                     uint32_t w_rows);

}  // namespace doppler::kernels
