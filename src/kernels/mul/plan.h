#pragma once
#include <array>
#include <cstdint>
#include <string>

#include "gpu/device.h"

namespace doppler::kernels {

/// Mirrors Params in mul.wgsl.
struct MulParams {
  uint32_t rows, width, a_offset, a_stride;
  uint32_t b_offset, b_stride, out_offset, out_stride;
  uint32_t grid_x, pad0 = 0, pad1 = 0, pad2 = 0;
};
static_assert(sizeof(MulParams) == 48);

struct MulPlan {
  bool vec4 = false;
  uint32_t workgroup = 64;
  std::array<uint32_t, 3> grid{};
  std::string reason;
};

/// `aligned`: every offset, stride and the width are multiples of 4.
MulPlan plan_mul(uint32_t rows, uint32_t width, bool aligned, const gpu::Caps& caps);

}  // namespace doppler::kernels
