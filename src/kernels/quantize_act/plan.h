#pragma once
#include <array>
#include <cstdint>
#include <string>

#include "gpu/device.h"

namespace doppler::kernels {

/// Mirrors Params in quantize_act.wgsl.
struct QuantizeActParams {
  uint32_t rows, columns, groups, stride;
  uint32_t offset, grid_x, pad0 = 0, pad1 = 0;
};
static_assert(sizeof(QuantizeActParams) == 32);

struct QuantizeActPlan {
  bool vec4 = false;  // the rows can be read four columns at a time
  uint32_t workgroup = 64;
  std::array<uint32_t, 3> grid{};
  std::string reason;
};

/// `aligned`: offset and stride of x and columns are multiples of 4.
QuantizeActPlan plan_quantize_act(uint32_t rows, uint32_t columns, bool aligned, const gpu::Caps& caps);

}  // namespace doppler::kernels
