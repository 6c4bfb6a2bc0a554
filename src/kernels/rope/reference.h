#pragma once
// The slow, obvious form in f64.
#include <cstdint>
#include <span>
#include <vector>

namespace doppler::kernels {

/// x [rows, heads * head_dim] rotated as positions first, first + 1, …; rotary part = 2 * inv_freq.size()
/// columns.
std::vector<double> rope_reference(std::span<const float> x, uint32_t rows, uint32_t head_dim,
                                   std::span<const float> inv_freq, double magnitude, uint32_t first,
                                   bool interleaved);

}  // namespace doppler::kernels
