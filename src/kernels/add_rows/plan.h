#pragma once
#include <array>
#include <cstdint>
#include <string>

#include "gpu/device.h"

namespace doppler::kernels {

/// Mirrors Params in add_rows.wgsl.
struct AddRowsParams {
  uint32_t rows, columns, groups, part_first;
  uint32_t w_rows, in_offset, in_stride, out_offset;
  uint32_t lo_words, hi_words, scale_words, super_words;  // a row
  uint32_t scale_start, super_start, grid_x, out_stride;  // starts: words from the beginning of aux
  uint32_t first, step, pad0 = 0, pad1 = 0;
};
static_assert(sizeof(AddRowsParams) == 80);

struct AddRowsPlan {
  uint32_t workgroup = 64;
  std::array<uint32_t, 3> grid{};
  std::string reason;
};

AddRowsPlan plan_add_rows(uint32_t rows, uint32_t columns, const gpu::Caps& caps);

}  // namespace doppler::kernels
