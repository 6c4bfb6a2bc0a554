#pragma once
#include <array>
#include <cstdint>
#include <string>

#include "gpu/device.h"

namespace doppler::kernels {

/// Mirrors Params in rope_kv.wgsl.
struct RopeKvParams {
  uint32_t rows, q_heads, kv_heads, pairs;
  uint32_t x_offset, x_stride, table_row, position;
  uint32_t q_norm, k_norm, grid_x, pad = 0;
  float eps, weight_offset, pad0 = 0, pad1 = 0;
};
static_assert(sizeof(RopeKvParams) == 64);

struct RopeKvPlan {
  uint32_t workgroup = 64;
  std::array<uint32_t, 3> grid{};
  std::string reason;
};

/// `heads`: of q, k and v together.
RopeKvPlan plan_rope_kv(uint32_t rows, uint32_t heads, const gpu::Caps& caps);

}  // namespace doppler::kernels
