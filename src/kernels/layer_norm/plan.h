#pragma once
#include <array>
#include <cstdint>
#include <string>

#include "gpu/device.h"

namespace doppler::kernels {

/// Mirrors Params in layer_norm.wgsl.
struct LayerNormParams {
  uint32_t rows, width, x_offset, x_stride;
  uint32_t out_offset, out_stride, weight_base, bias_base;
  float eps;
  uint32_t grid_x, pad0 = 0, pad1 = 0;
};
static_assert(sizeof(LayerNormParams) == 48);

struct LayerNormPlan {
  bool vec4 = false;
  uint32_t workgroup = 64;  // one workgroup per row
  std::array<uint32_t, 3> grid{};
  std::string reason;
};

/// `aligned`: every offset, stride and the width are multiples of 4.
LayerNormPlan plan_layer_norm(uint32_t rows, uint32_t width, bool aligned, const gpu::Caps& caps);

}  // namespace doppler::kernels
