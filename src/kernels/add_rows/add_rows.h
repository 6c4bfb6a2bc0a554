#pragma once
// out[r] = in[r] + table[first + r * step]: learned positions (step 1), or one row added to all (step 0).
#include <cstdint>

#include "kernels/add_rows/plan.h"
#include "kernels/common/matrix.h"
#include "kernels/weights/packed.h"

namespace doppler::kernels {

struct AddRowsArgs {
  Matrix in;
  PackedWeight table;  // one part; a row of `out` whose table row lies in another part stays as it was
  Matrix out;          // same shape as in; another buffer
  uint32_t first = 0;  // the table's row for the first row of `in`
  uint32_t step = 1;   // 1 or 0
};

/// Record once per part of a split table.
Result<void> record_add_rows(gpu::Device& device, gpu::Commands& commands, const AddRowsArgs& args);
Result<void> run_add_rows(gpu::Device& device, const AddRowsArgs& args);

}  // namespace doppler::kernels
