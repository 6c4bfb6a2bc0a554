#pragma once
#include <array>
#include <cstdint>
#include <string>

#include "gpu/device.h"

namespace doppler::kernels {

/// Mirrors Params in gated_act.wgsl.
struct GatedActParams {
  uint32_t rows, width, in_offset, in_stride;
  uint32_t out_offset, out_stride, half, grid_x;
  float limit, alpha;
  uint32_t pad0 = 0, pad1 = 0;
};
static_assert(sizeof(GatedActParams) == 48);

struct GatedActPlan {
  bool vec4 = false;
  uint32_t workgroup = 64;
  std::array<uint32_t, 3> grid{};
  std::string reason;
};

/// `aligned`: every offset, stride, the width and half a group are multiples of 4.
GatedActPlan plan_gated_act(uint32_t rows, uint32_t width, bool aligned, const gpu::Caps& caps);

}  // namespace doppler::kernels
