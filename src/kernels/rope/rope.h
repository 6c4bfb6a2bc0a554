#pragma once
// Rotary position embedding, in place on a column slice. Angles come from a table of cos and sin made on the
// host: no GPU's sin() is trusted with an angle of 100,000 radians.
#include <cstdint>
#include <span>
#include <vector>

#include "kernels/common/matrix.h"
#include "kernels/rope/plan.h"

namespace doppler::kernels {

/// [count, inv_freq.size()] pairs (cos, sin) * magnitude for positions first, first + 1, …. The angle is the
/// f32 product position * inv_freq[i] (as the models were trained), its cos and sin are taken in f64.
std::vector<float> rope_table(std::span<const float> inv_freq, float magnitude, uint32_t first,
                              uint32_t count);

struct RopeArgs {
  Matrix x;  // width = heads * head_dim
  uint32_t head_dim = 0;
  uint32_t rotary_dim = 0;             // even, at most head_dim: later columns of a head stay as they are
  bool interleaved = false;            // pairs (2i, 2i+1); else (i, i + rotary_dim / 2)
  const gpu::Buffer* table = nullptr;  // rope_table() uploaded
  uint32_t table_row = 0;              // the table's row for x's first row; row r takes table_row + r
};

Result<void> record_rope(gpu::Device& device, gpu::Commands& commands, const RopeArgs& args);
Result<void> run_rope(gpu::Device& device, const RopeArgs& args);

}  // namespace doppler::kernels
