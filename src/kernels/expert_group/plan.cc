#include "kernels/expert_group/plan.h"

#include <algorithm>

#include "kernels/common/record.h"

namespace doppler::kernels {

ExpertGroupPlan plan_expert_group(uint32_t rows, uint32_t top_k, uint32_t experts, const gpu::Caps& caps) {
  ExpertGroupPlan plan;
  plan.workgroup = std::min(256u, caps.max_workgroup_invocations);
  plan.uses = rows * top_k;
  const uint64_t average = ceil_div(plan.uses, experts);
  while (plan.tile > kSmallestExpertTile && plan.tile / 2 >= average) plan.tile /= 2;
  // Each expert that is used ends in a tile that may not be full.
  plan.tiles = plan.uses / plan.tile + std::min(experts, plan.uses);
  plan.reason = fmt::format("{} uses of {} experts, {} a tile", plan.uses, experts, plan.tile);
  return plan;
}

}  // namespace doppler::kernels
