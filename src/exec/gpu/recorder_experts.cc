// The steps of mixtures of experts.
#include "exec/gpu/recorder.h"
#include "kernels/expert_group/expert_group.h"
#include "kernels/expert_linear/expert_linear.h"
#include "kernels/expert_sum/expert_sum.h"
#include "kernels/quantize_act/quantize_act.h"
#include "kernels/route/route.h"

namespace doppler::gpu_exec {
namespace {

using graph::Node;

/// `x` with a row a slot, where each slot has its own columns.
kernels::Matrix row_a_use(kernels::Matrix x, uint32_t columns) {
  if (x.width == columns) return x;
  x.rows *= x.width / columns;
  x.width = x.stride = columns;
  return x;
}

}  // namespace

Result<void> Recorder::record_experts(gpu::Commands& commands, const Step& step, const Pass& pass) const {
  const Node& node = graph_.nodes[step.node];
  switch (step.kind) {
    case StepKind::kRoute:
      return kernels::record_route(device_, commands,
                                   {matrix(node.in, pass), matrix(node.out, pass), node.routing});
    case StepKind::kExpertGroup: {
      const auto plan = kernels::plan_expert_group(pass.rows, node.top_k, node.in.width, device_.caps());
      return kernels::record_expert_group(
          device_, commands,
          {matrix(node.out, pass), node.in.width, kernels::expert_groups(work_.expert_groups, plan)});
    }
    case StepKind::kExpertQuantize: {
      const kernels::Matrix x = row_a_use(matrix(node.in, pass), graph_.weights[node.weights[0]].columns);
      return kernels::record_quantize_act(
          device_, commands, {x, kernels::quantized_act(work_.quantized[step.int8_buffer], x.rows, x.width)});
    }
    case StepKind::kExpertLinear:
      return record_expert_linear(commands, step, pass);
    case StepKind::kExpertSum:
      return kernels::record_expert_sum(
          device_, commands, {matrix(node.in, pass), matrix(node.in2, pass), matrix(node.out, pass)});
    default:
      return fail(ErrorCode::kGpu, "[gpu] a step of experts wanted, got {}", step_name(step.kind));
  }
}

Result<void> Recorder::record_expert_linear(gpu::Commands& commands, const Step& step,
                                            const Pass& pass) const {
  const Node& node = graph_.nodes[step.node];
  const ExpertLayer& layer = fixed_.expert_layers[step.expert_layer];
  const graph::Weight& weight = graph_.weights[step.weight];
  kernels::ExpertLinearArgs args;
  args.routes = matrix(node.in2, pass);
  args.experts = layer.experts;
  args.w = experts_.stack(layer.pool, step.expert_matrix, step.part);
  args.out = kernels::columns(matrix(node.out, pass), step.column, weight.rows);
  args.slot_width = node.out.width / layer.top_k;
  if (fixed_.experts_on_demand) args.places = &work_.places;
  if (step.int8) {
    const kernels::Matrix x = row_a_use(matrix(node.in, pass), weight.columns);
    args.quantized = kernels::quantized_act(work_.quantized[step.int8_buffer], x.rows, x.width);
  } else {
    args.x = matrix(node.in, pass);
  }
  if (kernels::expert_linear_groups(pass.rows, layer.top_k, layer.experts))
    args.groups = kernels::expert_groups(
        work_.expert_groups,
        kernels::plan_expert_group(pass.rows, layer.top_k, layer.experts, device_.caps()));
  return kernels::record_expert_linear(device_, commands, args);
}

}  // namespace doppler::gpu_exec
