#include "kernels/expert_linear/plan.h"

#include "kernels/common/record.h"

namespace doppler::kernels {

bool expert_linear_groups(uint32_t rows, uint32_t top_k, uint32_t experts) {
  // With fewer uses than experts hardly two share one.
  return rows > kMatvecRows && uint64_t{rows} * top_k > experts;
}

LinearPlan plan_expert_linear(const ExpertLinearShape& shape, const gpu::Caps& caps) {
  LinearShape one{shape.dtype, 1, shape.columns, shape.w_rows, shape.int8, shape.aligned};
  const uint32_t uses = shape.rows * shape.top_k;
  if (!expert_linear_groups(shape.rows, shape.top_k, shape.experts)) {
    LinearPlan plan = plan_linear_as(LinearKernel::kMatvec, one, caps);
    plan.grid[2] = uses;
    plan.reason = fmt::format("{} uses of {} experts go one by one", uses, shape.experts);
    return plan;
  }
  const ExpertGroupPlan group = plan_expert_group(shape.rows, shape.top_k, shape.experts, caps);
  LinearPlan plan = plan_linear_as(LinearKernel::kMatmat, one, caps);
  plan.x_rows_tile = group.tile;
  plan.grid[1] = group.tiles;
  plan.reason = group.reason;
  return plan;
}

}  // namespace doppler::kernels
