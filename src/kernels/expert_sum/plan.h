#pragma once
#include <array>
#include <cstdint>
#include <string>

#include "gpu/device.h"

namespace doppler::kernels {

/// Mirrors Params in expert_sum.wgsl.
struct ExpertSumParams {
  uint32_t rows, width, top_k, grid_x;
  uint32_t in_offset, in_stride, routes_offset, routes_stride;
  uint32_t out_offset, out_stride, pad0 = 0, pad1 = 0;
};
static_assert(sizeof(ExpertSumParams) == 48);

struct ExpertSumPlan {
  bool vec4 = false;
  uint32_t workgroup = 64;
  std::array<uint32_t, 3> grid{};
  std::string reason;
};

/// `aligned`: every offset, stride and the width are multiples of 4.
ExpertSumPlan plan_expert_sum(uint32_t rows, uint32_t width, bool aligned, const gpu::Caps& caps);

}  // namespace doppler::kernels
