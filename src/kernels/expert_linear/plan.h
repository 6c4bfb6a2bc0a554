#pragma once
#include <cstdint>
#include <string>

#include "kernels/expert_group/plan.h"
#include "kernels/linear/plan.h"

namespace doppler::kernels {

/// Mirrors Params in expert_linear/expert_io.wgsl.
struct ExpertLinearParams {
  uint32_t uses, columns, groups, w_rows;
  uint32_t x_offset, x_stride, out_offset, out_stride;
  uint32_t lo_words, hi_words, scale_words, super_words;  // a row
  uint32_t scale_start, super_start, grid_x, x_uses;      // starts: words from the beginning of aux
  uint32_t top_k, slot_width, first, held;
  uint32_t routes_offset, routes_stride, tiles, pad = 0;
};
static_assert(sizeof(ExpertLinearParams) == 96);

/// What choosing a kernel depends on. Neither how many experts a buffer holds nor which: results are the same
/// whatever is resident.
struct ExpertLinearShape {
  DType dtype = DType::kF32;
  uint32_t rows = 1, top_k = 1, experts = 1;
  uint32_t columns = 0, w_rows = 0;  // of one expert
  bool int8 = false;                 // x is quantised
  bool aligned = true;               // x can be read four columns at a time
};

/// Up to this many rows, or uses as there are experts, each use goes by itself; above, uses are grouped.
bool expert_linear_groups(uint32_t rows, uint32_t top_k, uint32_t experts);

/// The kernel, its grid and its numbers; matmat tiles are those of plan_expert_group.
LinearPlan plan_expert_linear(const ExpertLinearShape& shape, const gpu::Caps& caps);

}  // namespace doppler::kernels
