#pragma once
#include <array>
#include <cstdint>
#include <string>

#include "gpu/device.h"

namespace doppler::kernels {

/// Mirrors Params in select_rows.wgsl.
struct SelectRowsParams {
  uint32_t rows, width, in_offset, in_stride;
  uint32_t out_offset, out_stride, first, grid_x;
};
static_assert(sizeof(SelectRowsParams) == 32);

struct SelectRowsPlan {
  uint32_t workgroup = 64;
  std::array<uint32_t, 3> grid{};
  std::string reason;
};

SelectRowsPlan plan_select_rows(uint32_t rows, uint32_t width, const gpu::Caps& caps);

}  // namespace doppler::kernels
