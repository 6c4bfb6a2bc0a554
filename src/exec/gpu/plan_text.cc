// A plan as people read it.
#include "exec/gpu/plan.h"

namespace doppler::gpu_exec {
namespace {

void append(std::string& out, const graph::Graph& graph, const std::vector<Step>& steps) {
  for (const Step& step : steps) {
    const graph::Node& node = graph.nodes[step.node];
    const std::string where = node.layer >= 0 ? fmt::format("layer {}", node.layer) : std::string("model");
    const std::string weight =
        step.weight == graph::kNone ? std::string() : " " + graph.weights[step.weight].name;
    out += fmt::format("{:<9} {:<34} {:<30} {}{}\n", where, step.kernel, step.shape, step.reason, weight);
  }
}

}  // namespace

std::string_view step_name(StepKind kind) {
  switch (kind) {
    case StepKind::kGather:
      return "gather";
    case StepKind::kAddRows:
      return "add_rows";
    case StepKind::kRmsNorm:
      return "rms_norm";
    case StepKind::kAddRmsNorm:
      return "add_rms_norm";
    case StepKind::kLayerNorm:
      return "layer_norm";
    case StepKind::kQuantizeAct:
      return "quantize_act";
    case StepKind::kLinear:
      return "linear";
    case StepKind::kRope:
      return "rope";
    case StepKind::kKvWrite:
      return "kv_write";
    case StepKind::kAttention:
      return "attention";
    case StepKind::kGatedAct:
      return "gated_act";
    case StepKind::kAct:
      return "act";
    case StepKind::kAdd:
      return "add";
    case StepKind::kMul:
      return "mul";
    case StepKind::kSelectRows:
      return "select_rows";
    case StepKind::kMeanRows:
      return "mean_rows";
    case StepKind::kL2Norm:
      return "l2_norm";
    case StepKind::kSoftcap:
      return "softcap";
    case StepKind::kRoute:
      return "route";
    case StepKind::kExpertGroup:
      return "expert_group";
    case StepKind::kExpertQuantize:
      return "quantize_act";
    case StepKind::kExpertLinear:
      return "expert_linear";
    case StepKind::kExpertSum:
      return "expert_sum";
  }
  return "?";
}

std::string plan_text(const graph::Graph& graph, const Plan& plan) {
  std::string out;
  append(out, graph, plan.body);
  append(out, graph, plan.head);
  const size_t count = plan.body.size() + plan.head.size();
  out += fmt::format("{} dispatches for {} tokens, logits of {}\n", count, plan.rows, plan.selected);
  return out;
}

}  // namespace doppler::gpu_exec
