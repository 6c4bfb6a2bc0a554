#include "kernels/expert_group/expert_group.h"

#include "kernels/common/record.h"
#include "kernels/route/plan.h"

namespace doppler::kernels {

uint64_t expert_groups_bytes(const ExpertGroupPlan& plan) {
  return (uint64_t{plan.tiles} * 4 + plan.uses) * 4;
}

uint64_t most_expert_groups_bytes(uint32_t rows, uint32_t top_k, uint32_t experts) {
  const uint64_t uses = uint64_t{rows} * top_k;
  return ((uses / kSmallestExpertTile + experts) * 4 + uses) * 4;  // small tiles are the most
}

ExpertGroups expert_groups(const gpu::Buffer& buffer, const ExpertGroupPlan& plan) {
  return {&buffer, plan.tile, plan.tiles, plan.uses};
}

Result<void> record_expert_group(gpu::Device& device, gpu::Commands& commands, const ExpertGroupArgs& args) {
  const gpu::Caps& caps = device.caps();
  const uint32_t top_k = args.routes.width / 2;
  DOPPLER_CHECK_OK(check_matrix("expert_group", "routes", args.routes));
  if (args.experts == 0 || args.experts > kMaxExperts)
    return fail(ErrorCode::kUnsupported, "[expert_group] 1 to {} experts wanted, got {}", kMaxExperts,
                args.experts);
  const ExpertGroupPlan plan = plan_expert_group(args.routes.rows, top_k, args.experts, caps);
  const ExpertGroups& out = args.out;
  if (out.buffer == nullptr || out.buffer == args.routes.buffer || out.tile != plan.tile ||
      out.tiles != plan.tiles || out.uses != plan.uses || out.buffer->bytes() < expert_groups_bytes(plan))
    return fail(ErrorCode::kBadInput, "[expert_group] out: a buffer of its own with {} bytes wanted",
                expert_groups_bytes(plan));
  Defines defines;
  defines.number("WORKGROUP", plan.workgroup).number("MAX_EXPERTS", kMaxExperts);
  DOPPLER_TRY(const gpu::Pipeline* pipeline,
              kernel_pipeline(device, fmt::format("expert_group/wg{}", plan.workgroup),
                              "expert_group/expert_group.wgsl", defines));
  const BoundMatrix routes = bind_matrix(args.routes, caps);
  const ExpertGroupParams params{plan.uses,  top_k,         args.experts,      plan.tile,
                                 plan.tiles, routes.offset, args.routes.stride};
  const gpu::Binding bindings[] = {routes.binding, {out.buffer, 0, expert_groups_bytes(plan)}};
  commands.dispatch(*pipeline, bindings, gpu::as_params(params), {1, 1, 1});
  return {};
}

Result<void> run_expert_group(gpu::Device& device, const ExpertGroupArgs& args) {
  return run_now(device, "expert_group", record_expert_group, args);
}

}  // namespace doppler::kernels
