#include "kernels/add_rows/plan.h"

#include "kernels/common/record.h"

namespace doppler::kernels {

AddRowsPlan plan_add_rows(uint32_t rows, uint32_t columns, const gpu::Caps& caps) {
  AddRowsPlan plan;
  plan.grid = grid_for(ceil_div(rows * ceil_div(columns, 32), plan.workgroup), caps);
  plan.reason = "one thread per row and 32 columns";
  return plan;
}

}  // namespace doppler::kernels
