#include "kernels/select_rows/plan.h"

#include "kernels/common/record.h"

namespace doppler::kernels {

SelectRowsPlan plan_select_rows(uint32_t rows, uint32_t width, const gpu::Caps& caps) {
  SelectRowsPlan plan;
  plan.grid = grid_for(ceil_div(uint64_t{rows} * width, plan.workgroup), caps);
  plan.reason = "one thread per element";
  return plan;
}

}  // namespace doppler::kernels
