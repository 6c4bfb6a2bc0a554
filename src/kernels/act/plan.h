#pragma once
#include <array>
#include <cstdint>
#include <string>

#include "gpu/device.h"

namespace doppler::kernels {

/// Mirrors Params in act.wgsl.
struct ActParams {
  uint32_t rows, width, in_offset, in_stride;
  uint32_t out_offset, out_stride, grid_x, pad = 0;
};
static_assert(sizeof(ActParams) == 32);

struct ActPlan {
  bool vec4 = false;
  uint32_t workgroup = 64;
  std::array<uint32_t, 3> grid{};
  std::string reason;
};

/// `aligned`: every offset, stride and the width are multiples of 4.
ActPlan plan_act(uint32_t rows, uint32_t width, bool aligned, const gpu::Caps& caps);

}  // namespace doppler::kernels
