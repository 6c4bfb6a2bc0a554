#include "kernels/layer_norm/plan.h"

#include "kernels/common/record.h"

namespace doppler::kernels {

LayerNormPlan plan_layer_norm(uint32_t rows, uint32_t width, bool aligned, const gpu::Caps& caps) {
  LayerNormPlan plan;
  plan.vec4 = aligned;
  // As rms_norm: 256 threads where each has at least two steps.
  const uint32_t steps = aligned ? width / 4 : width;
  plan.workgroup = caps.hardware && steps >= 512 && caps.max_workgroup_invocations >= 256 ? 256 : 64;
  plan.grid = grid_for(rows, caps);
  plan.reason = fmt::format("{} steps a row", steps);
  return plan;
}

}  // namespace doppler::kernels
