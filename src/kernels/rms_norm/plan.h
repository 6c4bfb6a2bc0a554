#pragma once
#include <array>
#include <cstdint>
#include <string>

#include "gpu/device.h"

namespace doppler::kernels {

/// Mirrors Params in rms_norm.wgsl. A group is `width` columns with a norm of its own.
struct RmsNormParams {
  uint32_t rows, groups, width, x_stride;
  uint32_t x_offset, out_stride, out_offset, weight_base;
  uint32_t b_offset, b_stride, sum_offset, sum_stride;  // add_rms_norm only
  float eps, weight_offset;
  uint32_t grid_x, b_weight_base = 0;  // b_weight_base: where b has a norm of its own
};
static_assert(sizeof(RmsNormParams) == 64);

struct RmsNormPlan {
  bool vec4 = false;
  uint32_t workgroup = 64;  // one workgroup per group
  std::array<uint32_t, 3> grid{};
  std::string reason;
};

/// `aligned`: every offset, stride and the width are multiples of 4.
RmsNormPlan plan_rms_norm(uint32_t rows, uint32_t groups, uint32_t width, bool aligned,
                          const gpu::Caps& caps);

}  // namespace doppler::kernels
