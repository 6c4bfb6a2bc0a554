#pragma once
#include <array>
#include <cstdint>
#include <string>

#include "gpu/device.h"

namespace doppler::kernels {

/// Mirrors Params in mean_rows.wgsl.
struct MeanRowsParams {
  uint32_t rows, width, in_offset, in_stride;
  uint32_t out_offset, grid_x, pad0 = 0, pad1 = 0;
};
static_assert(sizeof(MeanRowsParams) == 32);

struct MeanRowsPlan {
  uint32_t workgroup = 256;
  uint32_t columns = 16;  // of one workgroup: 64 bytes that its threads read together
  std::array<uint32_t, 3> grid{};
  std::string reason;
};

MeanRowsPlan plan_mean_rows(uint32_t width, const gpu::Caps& caps);

}  // namespace doppler::kernels
