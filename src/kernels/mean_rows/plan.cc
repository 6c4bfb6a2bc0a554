#include "kernels/mean_rows/plan.h"

#include "kernels/common/record.h"

namespace doppler::kernels {

MeanRowsPlan plan_mean_rows(uint32_t width, const gpu::Caps& caps) {
  MeanRowsPlan plan;
  if (!caps.hardware) plan.workgroup = 64;  // a software driver gains nothing from more
  plan.grid = grid_for(ceil_div(width, plan.columns), caps);
  plan.reason = fmt::format("{} threads a column", plan.workgroup / plan.columns);
  return plan;
}

}  // namespace doppler::kernels
