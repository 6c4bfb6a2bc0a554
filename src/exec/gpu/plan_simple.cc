#include "exec/gpu/plan_simple.h"

#include "kernels/act/plan.h"
#include "kernels/add/plan.h"
#include "kernels/common/activation.h"
#include "kernels/gated_act/plan.h"
#include "kernels/kv_write/plan.h"
#include "kernels/l2_norm/plan.h"
#include "kernels/layer_norm/plan.h"
#include "kernels/mean_rows/plan.h"
#include "kernels/mul/plan.h"
#include "kernels/rms_norm/plan.h"
#include "kernels/rope/plan.h"
#include "kernels/select_rows/plan.h"
#include "kernels/softcap/plan.h"

namespace doppler::gpu_exec {
namespace {

using graph::Graph;
using graph::kNone;
using graph::Node;
using graph::Op;

// Takes any kernel's plan: they share `workgroup` and `reason`.
template <class Plan>
Step step_of(StepKind kind, std::string kernel, const Plan& plan) {
  Step step;
  step.kind = kind;
  step.kernel = fmt::format("{}/wg{}", kernel, plan.workgroup);
  step.reason = plan.reason;
  return step;
}

std::string named(std::string_view name, bool vec4) {
  return fmt::format("{}/{}", name, vec4 ? "vec4" : "scalar");
}

Step plan_norm(const Graph& graph, const Node& node, uint32_t rows, const gpu::Caps& caps) {
  const bool aligned = is_aligned(graph, node.in);
  if (node.op == Op::kLayerNorm) {
    const auto p = kernels::plan_layer_norm(rows, node.in.width, aligned, caps);
    return step_of(StepKind::kLayerNorm, named("layer_norm", p.vec4), p);
  }
  const uint32_t groups = node.in.width / node.group;
  const auto p = kernels::plan_rms_norm(rows, groups, node.group, aligned && node.group % 4 == 0, caps);
  Step step = step_of(StepKind::kRmsNorm, named("rms_norm", p.vec4), p);
  step.shape = fmt::format("{} x {} x {}", rows, groups, node.group);
  return step;
}

Step plan_activation(const Graph& graph, const Node& node, uint32_t rows, const gpu::Caps& caps) {
  const bool aligned = is_aligned(graph, node.in) && is_aligned(graph, node.out);
  const std::string_view name = kernels::activation_name(node.activation);
  if (node.op == Op::kAct) {
    const auto p = kernels::plan_act(rows, node.out.width, aligned, caps);
    return step_of(StepKind::kAct, named(fmt::format("act/{}", name), p.vec4), p);
  }
  const auto p = kernels::plan_gated_act(rows, node.out.width, aligned && node.group % 8 == 0, caps);
  return step_of(StepKind::kGatedAct, named(fmt::format("gated_act/{}", name), p.vec4), p);
}

Step plan_of(const Graph& graph, const Node& node, uint32_t rows, const gpu::Caps& caps) {
  const uint32_t width = node.out.value != kNone ? node.out.width : node.in.width;
  switch (node.op) {
    case Op::kRmsNorm:
    case Op::kLayerNorm:
      return plan_norm(graph, node, rows, caps);
    case Op::kGatedAct:
    case Op::kAct:
      return plan_activation(graph, node, rows, caps);
    case Op::kRope: {
      const auto pairs = static_cast<uint32_t>(graph.rope_tables[node.rope_table].inv_freq.size());
      return step_of(StepKind::kRope, "rope",
                     kernels::plan_rope(rows, node.in.width / node.group, pairs, caps));
    }
    case Op::kKvWrite:
      return step_of(StepKind::kKvWrite, "kv_write", kernels::plan_kv_write(rows, width, caps));
    case Op::kAdd: {
      const auto p =
          kernels::plan_add(rows, width, is_aligned(graph, node.in) && is_aligned(graph, node.in2), caps);
      return step_of(StepKind::kAdd, named("add", p.vec4), p);
    }
    case Op::kMul: {
      const bool one = node.in2.width == 1;
      const auto p = kernels::plan_mul(
          rows, width, is_aligned(graph, node.in) && (one || is_aligned(graph, node.in2)), caps);
      return step_of(StepKind::kMul, named("mul", p.vec4), p);
    }
    case Op::kMeanRows:
      return step_of(StepKind::kMeanRows, "mean_rows", kernels::plan_mean_rows(width, caps));
    case Op::kL2Norm:
      return step_of(StepKind::kL2Norm, "l2_norm", kernels::plan_l2_norm(rows, width, caps));
    case Op::kSoftcap:
      return step_of(StepKind::kSoftcap, "softcap", kernels::plan_softcap(rows, width, caps));
    default:  // kSelectRows, kFirstRow
      return step_of(StepKind::kSelectRows, "select_rows", kernels::plan_select_rows(rows, width, caps));
  }
}

}  // namespace

bool is_aligned(const Graph& graph, const graph::View& view) {
  return view.offset % 4 == 0 && view.width % 4 == 0 && graph.values[view.value].width % 4 == 0;
}

bool is_simple(Op op) {
  switch (op) {
    case Op::kRmsNorm:
    case Op::kLayerNorm:
    case Op::kRope:
    case Op::kKvWrite:
    case Op::kGatedAct:
    case Op::kAct:
    case Op::kAdd:
    case Op::kMul:
    case Op::kSelectRows:
    case Op::kMeanRows:
    case Op::kFirstRow:
    case Op::kL2Norm:
    case Op::kSoftcap:
      return true;
    default:
      return false;
  }
}

Step plan_simple(const Graph& graph, const Node& node, uint32_t rows, const gpu::Caps& caps) {
  Step step = plan_of(graph, node, rows, caps);
  if (step.shape.empty())
    step.shape = fmt::format("{} x {}", rows, node.out.value != kNone ? node.out.width : node.in.width);
  return step;
}

}  // namespace doppler::gpu_exec
