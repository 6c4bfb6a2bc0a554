#include "kernels/gather/plan.h"

#include "kernels/common/record.h"

namespace doppler::kernels {

GatherPlan plan_gather(uint32_t count, uint32_t columns, const gpu::Caps& caps) {
  GatherPlan plan;
  plan.grid = grid_for(ceil_div(count * ceil_div(columns, 32), plan.workgroup), caps);
  plan.reason = "one thread per id and 32 columns";
  return plan;
}

}  // namespace doppler::kernels
