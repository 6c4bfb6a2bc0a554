#pragma once
#include <array>
#include <cstdint>
#include <string>

#include "gpu/device.h"

namespace doppler::kernels {

/// Mirrors Params in l2_norm.wgsl.
struct L2NormParams {
  uint32_t rows, width, x_offset, x_stride;
  uint32_t out_offset, out_stride;
  float eps;
  uint32_t grid_x;
};
static_assert(sizeof(L2NormParams) == 32);

struct L2NormPlan {
  uint32_t workgroup = 64;  // one workgroup per row
  std::array<uint32_t, 3> grid{};
  std::string reason;
};

L2NormPlan plan_l2_norm(uint32_t rows, uint32_t width, const gpu::Caps& caps);

}  // namespace doppler::kernels
