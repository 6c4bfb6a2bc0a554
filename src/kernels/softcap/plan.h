#pragma once
#include <array>
#include <cstdint>
#include <string>

#include "gpu/device.h"

namespace doppler::kernels {

/// Mirrors Params in softcap.wgsl.
struct SoftcapParams {
  uint32_t rows, width, offset, stride;
  float cap;
  uint32_t grid_x, pad0 = 0, pad1 = 0;
};
static_assert(sizeof(SoftcapParams) == 32);

struct SoftcapPlan {
  uint32_t workgroup = 64;
  std::array<uint32_t, 3> grid{};
  std::string reason;
};

SoftcapPlan plan_softcap(uint32_t rows, uint32_t width, const gpu::Caps& caps);

}  // namespace doppler::kernels
