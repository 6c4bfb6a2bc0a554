#include "kernels/route/plan.h"

#include "kernels/common/record.h"

namespace doppler::kernels {

RoutePlan plan_route(uint32_t rows, uint32_t experts, const gpu::Caps& caps) {
  RoutePlan plan;
  // Each thread compares its experts with all others: more threads for many experts.
  plan.workgroup = experts > 128 ? 256 : 64;
  plan.grid = grid_for(rows, caps);
  plan.reason = fmt::format("a workgroup a row, {} experts", experts);
  return plan;
}

}  // namespace doppler::kernels
