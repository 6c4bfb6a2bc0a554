#include "exec/gpu/plan_experts.h"

#include <algorithm>

#include "kernels/expert_group/expert_group.h"
#include "kernels/expert_linear/plan.h"
#include "kernels/expert_sum/plan.h"
#include "kernels/quantize_act/quantize_act.h"
#include "kernels/route/plan.h"

namespace doppler::gpu_exec {
namespace {

using graph::Graph;
using graph::kNone;
using graph::Node;
using graph::Op;

Step make_step(StepKind kind, uint32_t node, std::string kernel, std::string shape, std::string reason) {
  Step step;
  step.kind = kind;
  step.node = node;
  step.kernel = std::move(kernel);
  step.shape = std::move(shape);
  step.reason = std::move(reason);
  return step;
}

bool aligned(const Graph& graph, const graph::View& view, uint32_t columns) {
  return view.offset % 4 == 0 && graph.values[view.value].width % 4 == 0 && columns % 4 == 0;
}

bool takes_int8(const GpuOptions& options, const graph::Weight& weight) {
  return options.precision == Precision::kFast && kernels::linear_takes_int8(weight.dtype);
}

/// Rows and columns in which the activations of a kExpertLinear are quantised.
std::pair<uint32_t, uint32_t> quantized_shape(const Graph& graph, const Node& node, uint32_t rows) {
  const uint32_t columns = graph.weights[node.weights[0]].columns;
  return {node.in.width == columns ? rows : rows * node.top_k, columns};
}

void add_route(const Graph& graph, const StaticPlan& fixed, uint32_t index, uint32_t rows,
               const gpu::Caps& caps, std::vector<Step>& steps) {
  const Node& node = graph.nodes[index];
  const auto route = kernels::plan_route(rows, node.in.width, caps);
  steps.push_back(make_step(StepKind::kRoute, index, fmt::format("route/wg{}", route.workgroup),
                            fmt::format("{} x {} of {}", rows, node.top_k, node.in.width), route.reason));
  for (uint32_t i = 0; i < fixed.expert_layers.size(); ++i)
    if (fixed.expert_layers[i].route == index) steps.back().expert_layer = i;
  if (!kernels::expert_linear_groups(rows, node.top_k, node.in.width)) return;
  const auto group = kernels::plan_expert_group(rows, node.top_k, node.in.width, caps);
  steps.push_back(make_step(StepKind::kExpertGroup, index, fmt::format("expert_group/wg{}", group.workgroup),
                            fmt::format("{} uses", group.uses), group.reason));
  steps.back().completes = false;
}

void add_linear(const Graph& graph, const StaticPlan& fixed, uint32_t index, uint32_t rows,
                const gpu::Caps& caps, const GpuOptions& options, std::vector<Step>& steps) {
  const Node& node = graph.nodes[index];
  const uint32_t number = expert_layer_of(fixed.expert_layers, index);
  const ExpertLayer& layer = fixed.expert_layers[number];
  const ExpertPool& pool = fixed.expert_pools[layer.pool];
  const auto any_int8 = [&](graph::WeightId id) { return takes_int8(options, graph.weights[id]); };
  if (std::any_of(node.weights.begin(), node.weights.end(), any_int8)) {
    const auto [quantized_rows, columns] = quantized_shape(graph, node, rows);
    const auto p =
        kernels::plan_quantize_act(quantized_rows, columns, aligned(graph, node.in, columns), caps);
    steps.push_back(make_step(StepKind::kExpertQuantize, index,
                              fmt::format("quantize_act/{}/wg{}", p.vec4 ? "vec4" : "scalar", p.workgroup),
                              fmt::format("{} x {}", quantized_rows, columns), p.reason));
    steps.back().completes = false;
  }
  for (uint32_t m = 0; m < layer.matrices.size(); ++m) {
    const ExpertMatrix& matrix = layer.matrices[m];
    if (matrix.node != index) continue;
    const graph::Weight& weight = graph.weights[matrix.weight];
    const bool int8 = takes_int8(options, weight);
    const auto p =
        kernels::plan_expert_linear({weight.dtype, rows, layer.top_k, layer.experts, weight.columns,
                                     weight.rows, int8, int8 || aligned(graph, node.in, weight.columns)},
                                    caps);
    const std::vector<SlotRange>& parts = pool.matrices[m].parts;
    for (uint32_t part = 0; part < parts.size(); ++part) {
      steps.push_back(
          make_step(StepKind::kExpertLinear, index,
                    fmt::format("expert_linear/{}/{}/{}", linear_kernel_name(p.kernel),
                                dtype_name(weight.dtype), int8 ? "int8" : "f32"),
                    fmt::format("{} x {} x {} -> {}", rows, layer.top_k, weight.columns, weight.rows),
                    parts.size() == 1 ? p.reason
                                      : fmt::format("part {} of {}: {} experts a binding; {}", part + 1,
                                                    parts.size(), parts[0].count, p.reason)));
      Step& step = steps.back();
      step.weight = matrix.weight;
      step.part = part;
      step.column = matrix.column;
      step.int8 = int8;
      step.expert_matrix = m;
      step.completes = false;
    }
  }
  steps.back().completes = true;
  for (Step& step : steps) {
    step.expert_layer = number;
    step.int8_buffer = int8_buffer_of(fixed, index);
  }
}

}  // namespace

uint32_t int8_buffer_of(const StaticPlan& fixed, uint32_t node) {
  const uint32_t layer = expert_layer_of(fixed.expert_layers, node);
  return layer != kNone && fixed.expert_layers[layer].matrices[0].node != node ? 1 : 0;
}

Result<void> plan_experts(const Graph& graph, const gpu::Caps& caps, const GpuOptions& options,
                          StaticPlan& fixed) {
  DOPPLER_TRY(fixed.expert_layers, find_expert_layers(graph));
  if (fixed.expert_layers.empty()) return {};
  fixed.experts_on_demand = options.expert_memory_bytes > 0;
  DOPPLER_TRY(fixed.expert_pools,
              plan_expert_pools(graph, fixed.expert_layers, options.expert_memory_bytes, caps));
  for (const ExpertLayer& layer : fixed.expert_layers) {
    for (const ExpertMatrix& matrix : layer.matrices) {
      const auto [rows, columns] = quantized_shape(graph, graph.nodes[matrix.node], options.max_chunk);
      uint64_t& bytes = fixed.quantized_bytes[int8_buffer_of(fixed, matrix.node)];
      bytes = std::max(bytes, kernels::quantized_act_bytes(rows, columns));
    }
    fixed.expert_groups_bytes =
        std::max(fixed.expert_groups_bytes,
                 kernels::most_expert_groups_bytes(options.max_chunk, layer.top_k, layer.experts));
  }
  return {};
}

std::vector<Step> expert_steps(const Graph& graph, const StaticPlan& fixed, uint32_t index, uint32_t rows,
                               const gpu::Caps& caps, const GpuOptions& options) {
  const Node& node = graph.nodes[index];
  std::vector<Step> steps;
  if (node.op == Op::kRoute) {
    add_route(graph, fixed, index, rows, caps, steps);
  } else if (node.op == Op::kExpertLinear) {
    add_linear(graph, fixed, index, rows, caps, options, steps);
  } else {
    const bool vec4 = aligned(graph, node.in, node.out.width) && aligned(graph, node.out, node.out.width);
    const auto p = kernels::plan_expert_sum(rows, node.out.width, vec4, caps);
    steps.push_back(make_step(StepKind::kExpertSum, index,
                              fmt::format("expert_sum/{}/wg{}", p.vec4 ? "vec4" : "scalar", p.workgroup),
                              fmt::format("{} x {} x {}", rows, node.top_k, node.out.width), p.reason));
  }
  return steps;
}

}  // namespace doppler::gpu_exec
