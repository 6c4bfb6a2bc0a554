#include "kernels/quantize_act/plan.h"

#include "kernels/common/record.h"

namespace doppler::kernels {

QuantizeActPlan plan_quantize_act(uint32_t rows, uint32_t columns, bool aligned, const gpu::Caps& caps) {
  QuantizeActPlan plan;
  plan.vec4 = aligned;
  plan.grid = grid_for(ceil_div(rows * ceil_div(columns, 32), plan.workgroup), caps);
  plan.reason = aligned ? "rows of whole vec4" : "offset, stride or width is no multiple of 4";
  return plan;
}

}  // namespace doppler::kernels
