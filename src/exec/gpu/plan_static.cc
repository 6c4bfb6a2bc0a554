// What stays the same for every pass: parts of weights, buffers, and whether the graph runs at all.
#include <algorithm>

#include "exec/gpu/plan.h"
#include "exec/gpu/plan_experts.h"
#include "exec/gpu/plan_simple.h"
#include "exec/gpu/slots.h"
#include "kernels/attention/attention.h"
#include "kernels/quantize_act/quantize_act.h"
#include "kernels/weights/packed.h"

namespace doppler::gpu_exec {
namespace {

using graph::Graph;
using graph::Node;
using graph::Op;

// Logits of at most this many bytes are computed at once: 64 rows of Gemma's 262,144.
constexpr uint64_t kMaxLogitBytes = 64ull << 20;

Result<void> check_runs(const Graph& graph) {
  for (const Node& node : graph.nodes) {
    switch (node.op) {
      case Op::kEmbed:
      case Op::kAddPosition:
      case Op::kAddVector:
      case Op::kLinear:
      case Op::kRoute:
      case Op::kExpertLinear:
      case Op::kExpertSum:
        break;
      case Op::kAttention: {
        const uint32_t head_dim = graph.kv_layers[node.kv_layer].head_dim;
        if (head_dim % 8 != 0 || head_dim > kernels::kMaxHeadDim)
          return fail(
              ErrorCode::kUnsupported,
              "[gpu] attention heads of a multiple of 8 up to {} were wanted, got {}; use --device cpu",
              kernels::kMaxHeadDim, head_dim);
        break;
      }
      default:
        if (!is_simple(node.op))
          return fail(ErrorCode::kUnsupported, "[gpu] a model without the op {} was wanted; use --device cpu",
                      graph::op_name(node.op));
    }
  }
  return {};
}

// Cuts a weight so that each part fits a binding.
Result<std::vector<WeightPart>> parts_of(const graph::Weight& weight, const gpu::Caps& caps) {
  const uint32_t most =
      kernels::rows_per_part(weight.dtype, weight.rows, weight.columns, caps.max_binding_bytes);
  if (most == 0)
    return fail(ErrorCode::kUnsupported, "[gpu] a row of {} values of {} exceeds the {} bytes {} can bind",
                weight.columns, weight.name, caps.max_binding_bytes, caps.adapter);
  std::vector<WeightPart> parts;
  for (uint32_t first = 0; first < weight.rows; first += most)
    parts.push_back({first, std::min(most, weight.rows - first)});
  return parts;
}

// Ops whose weights are matrices, packed for the kernels.
bool reads_matrices(Op op) {
  return op == Op::kLinear || op == Op::kEmbed || op == Op::kAddPosition || op == Op::kAddVector;
}

}  // namespace

gpu::Caps planning_caps(gpu::Caps caps, const GpuOptions& options) {
  if (options.max_binding_bytes > 0)
    caps.max_binding_bytes = std::min(caps.max_binding_bytes, options.max_binding_bytes);
  return caps;
}

bool begins_head(Op op) { return op == Op::kSelectRows || op == Op::kMeanRows || op == Op::kFirstRow; }

Result<StaticPlan> plan_static(const Graph& graph, const gpu::Caps& caps, const GpuOptions& options) {
  DOPPLER_CHECK_OK(check_runs(graph));
  StaticPlan fixed;
  fixed.parts.resize(graph.weights.size());
  for (const Node& node : graph.nodes) {
    if (node.op == Op::kAttention)
      fixed.scratch_bytes = std::max(fixed.scratch_bytes, kernels::attention_scratch_bytes(
                                                              node.in.width / node.group,
                                                              graph.kv_layers[node.kv_layer].head_dim, caps));
    if (node.op == Op::kLinear)
      fixed.quantized_bytes =
          std::max(fixed.quantized_bytes, kernels::quantized_act_bytes(options.max_chunk, node.in.width));
    if (!reads_matrices(node.op)) continue;
    for (const graph::WeightId id : node.weights)
      if (fixed.parts[id].empty()) {
        DOPPLER_TRY(fixed.parts[id], parts_of(graph.weights[id], caps));
      }
  }
  DOPPLER_CHECK_OK(plan_experts(graph, caps, options, fixed));
  if (options.precision == Precision::kExact) fixed.quantized_bytes = 0;
  const uint64_t logit_bytes = std::min(kMaxLogitBytes, caps.max_binding_bytes);
  const uint64_t row_bytes = std::max<uint64_t>(uint64_t{graph.logits.width} * 4, 4);
  fixed.logit_rows =
      static_cast<uint32_t>(std::clamp<uint64_t>(logit_bytes / row_bytes, 1, options.max_chunk));
  if (graph.embedder) fixed.logit_rows = 1;  // one vector a text
  const Plan shape_of_all = plan_graph(graph, fixed, options.max_chunk, fixed.logit_rows, caps, options);
  fixed.slots = plan_slots(graph, shape_of_all, options.max_chunk, fixed.logit_rows, fixed.experts_on_demand);
  return fixed;
}

}  // namespace doppler::gpu_exec
