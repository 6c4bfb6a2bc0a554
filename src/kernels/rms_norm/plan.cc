#include "kernels/rms_norm/plan.h"

#include "kernels/common/record.h"

namespace doppler::kernels {

RmsNormPlan plan_rms_norm(uint32_t rows, uint32_t groups, uint32_t width, bool aligned,
                          const gpu::Caps& caps) {
  RmsNormPlan plan;
  plan.vec4 = aligned;
  // 256 threads where each has at least two steps; a software driver runs 64 with less ado.
  const uint32_t steps = aligned ? width / 4 : width;
  plan.workgroup = caps.hardware && steps >= 512 && caps.max_workgroup_invocations >= 256 ? 256 : 64;
  plan.grid = grid_for(uint64_t{rows} * groups, caps);
  plan.reason = fmt::format("{} steps a group", steps);
  return plan;
}

}  // namespace doppler::kernels
