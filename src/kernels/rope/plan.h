#pragma once
#include <array>
#include <cstdint>
#include <string>

#include "gpu/device.h"

namespace doppler::kernels {

/// Mirrors Params in rope.wgsl.
struct RopeParams {
  uint32_t rows, heads, head_dim, pairs;
  uint32_t offset, stride, table_row, grid_x;
};
static_assert(sizeof(RopeParams) == 32);

struct RopePlan {
  uint32_t workgroup = 64;
  std::array<uint32_t, 3> grid{};
  std::string reason;
};

RopePlan plan_rope(uint32_t rows, uint32_t heads, uint32_t pairs, const gpu::Caps& caps);

}  // namespace doppler::kernels
