#include "kernels/softcap/plan.h"

#include "kernels/common/record.h"

namespace doppler::kernels {

SoftcapPlan plan_softcap(uint32_t rows, uint32_t width, const gpu::Caps& caps) {
  SoftcapPlan plan;
  plan.grid = grid_for(ceil_div(uint64_t{rows} * width, plan.workgroup), caps);
  plan.reason = "one thread per element";
  return plan;
}

}  // namespace doppler::kernels
