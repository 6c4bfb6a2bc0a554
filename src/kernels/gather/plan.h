#pragma once
#include <array>
#include <cstdint>
#include <string>

#include "gpu/device.h"

namespace doppler::kernels {

/// Mirrors Params in gather.wgsl.
struct GatherParams {
  uint32_t count, columns, groups, first_row;
  uint32_t w_rows, out_offset, out_stride, ids_offset;
  uint32_t lo_words, hi_words, scale_words, super_words;  // a row
  uint32_t scale_start, super_start, grid_x;              // starts: words from the beginning of aux
  float scale;
};
static_assert(sizeof(GatherParams) == 64);

struct GatherPlan {
  uint32_t workgroup = 64;
  std::array<uint32_t, 3> grid{};
  std::string reason;
};

GatherPlan plan_gather(uint32_t count, uint32_t columns, const gpu::Caps& caps);

}  // namespace doppler::kernels
