#include "kernels/rope/plan.h"

#include "kernels/common/record.h"

namespace doppler::kernels {

RopePlan plan_rope(uint32_t rows, uint32_t heads, uint32_t pairs, const gpu::Caps& caps) {
  RopePlan plan;
  plan.grid = grid_for(ceil_div(uint64_t{rows} * heads * pairs, plan.workgroup), caps);
  plan.reason = "one thread per pair";
  return plan;
}

}  // namespace doppler::kernels
