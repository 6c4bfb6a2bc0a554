#include "kernels/l2_norm/plan.h"

#include "kernels/common/record.h"

namespace doppler::kernels {

L2NormPlan plan_l2_norm(uint32_t rows, uint32_t width, const gpu::Caps& caps) {
  L2NormPlan plan;
  plan.grid = grid_for(rows, caps);
  plan.reason = fmt::format("{} steps a thread", ceil_div(width, plan.workgroup));
  return plan;
}

}  // namespace doppler::kernels
