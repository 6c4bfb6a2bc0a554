#include "kernels/expert_sum/plan.h"

#include "kernels/common/record.h"

namespace doppler::kernels {

ExpertSumPlan plan_expert_sum(uint32_t rows, uint32_t width, bool aligned, const gpu::Caps& caps) {
  ExpertSumPlan plan;
  plan.vec4 = aligned;
  plan.grid = grid_for(ceil_div(uint64_t{rows} * (aligned ? width / 4 : width), plan.workgroup), caps);
  plan.reason = aligned ? "rows of whole vec4" : "offset, stride or width is no multiple of 4";
  return plan;
}

}  // namespace doppler::kernels
