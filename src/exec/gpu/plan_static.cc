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

// How often each weight is used.
std::vector<uint32_t> uses_of(const Graph& graph) {
  std::vector<uint32_t> uses(graph.weights.size(), 0);
  for (const Node& node : graph.nodes)
    for (const graph::WeightId id : node.weights) ++uses[id];
  return uses;
}

// Puts neighbouring weights of a product below each other where they are of one type and fit one binding.
void stack_weights(const Graph& graph, const Node& node, const std::vector<uint32_t>& uses,
                   const gpu::Caps& caps, StaticPlan& fixed) {
  if (node.op != Op::kLinear || !node.biases.empty()) return;
  size_t first = 0;
  for (size_t i = 1; i < node.weights.size(); ++i) {
    const graph::WeightId top = node.weights[first], id = node.weights[i];
    const graph::Weight &a = graph.weights[top], &b = graph.weights[id];
    std::vector<WeightPart>& parts = fixed.parts[top];
    const uint64_t rows = uint64_t{parts[0].rows} + b.rows;
    const bool fits = parts.size() == 1 && rows <= UINT32_MAX &&
                      kernels::rows_per_part(a.dtype, static_cast<uint32_t>(rows), a.columns,
                                             caps.max_binding_bytes) == rows;
    if (uses[top] != 1 || uses[id] != 1 || a.dtype != b.dtype || a.columns != b.columns || !fits) {
      first = i;
      continue;
    }
    parts[0].rows = static_cast<uint32_t>(rows);
    fixed.parts[id].clear();
    fixed.stacked[top].push_back(id);
  }
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
  fixed.stacked.resize(graph.weights.size());
  const std::vector<uint32_t> uses = uses_of(graph);
  for (const Node& node : graph.nodes) {
    if (node.op == Op::kAttention)
      fixed.scratch_bytes = std::max(fixed.scratch_bytes, kernels::attention_scratch_bytes(
                                                              node.in.width / node.group,
                                                              graph.kv_layers[node.kv_layer].head_dim, caps));
    if (node.op == Op::kLinear)
      fixed.quantized_bytes[0] =
          std::max(fixed.quantized_bytes[0], kernels::quantized_act_bytes(options.max_chunk, node.in.width));
    if (!reads_matrices(node.op)) continue;
    for (const graph::WeightId id : node.weights)
      if (fixed.parts[id].empty()) {
        DOPPLER_TRY(fixed.parts[id], parts_of(graph.weights[id], caps));
      }
    stack_weights(graph, node, uses, caps, fixed);
  }
  DOPPLER_CHECK_OK(plan_experts(graph, caps, options, fixed));
  if (options.precision == Precision::kExact) fixed.quantized_bytes = {};
  const uint64_t logit_bytes = std::min(kMaxLogitBytes, caps.max_binding_bytes);
  const uint64_t row_bytes = std::max<uint64_t>(uint64_t{graph.logits.width} * 4, 4);
  fixed.logit_rows =
      static_cast<uint32_t>(std::clamp<uint64_t>(logit_bytes / row_bytes, 1, options.max_chunk));
  if (graph.embedder) fixed.logit_rows = 1;  // one vector a text
  GpuOptions apart = options;
  apart.fuse = false;
  const Plan plan = plan_graph(graph, fixed, options.max_chunk, fixed.logit_rows, caps, apart);
  const Plan fused = plan_graph(graph, fixed, options.max_chunk, fixed.logit_rows, caps, options);
  fixed.slots = plan_slots(graph, plan, options.max_chunk, fixed.logit_rows, fixed.experts_on_demand, &fused);
  return fixed;
}

}  // namespace doppler::gpu_exec
