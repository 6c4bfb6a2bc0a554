#pragma once
// Copies rows: either a run of them, or those an index buffer names.
#include <cstdint>

#include "kernels/common/matrix.h"
#include "kernels/select_rows/plan.h"

namespace doppler::kernels {

struct SelectRowsArgs {
  Matrix in;
  Matrix out;                         // [rows kept, width]; another buffer
  uint32_t first = 0;                 // row r of out is row first + r of in …
  const gpu::Buffer* rows = nullptr;  // … or, if set, row rows[first + r] (u32, below in.rows)
};

Result<void> record_select_rows(gpu::Device& device, gpu::Commands& commands, const SelectRowsArgs& args);
Result<void> run_select_rows(gpu::Device& device, const SelectRowsArgs& args);

}  // namespace doppler::kernels
