#include "exec/gpu/step_time.h"

#include "exec/step_cost.h"

namespace doppler::gpu_exec {
namespace {

uint32_t rows_of(const graph::Graph& graph, const graph::View& view, const Pass& pass) {
  if (view.value == graph::kNone) return pass.rows;
  return graph.values[view.value].selected ? pass.selected : pass.rows;
}

}  // namespace

StepTime untimed(const graph::Graph& graph, const StaticPlan& fixed, const Step& step, const Pass& pass) {
  const graph::Node& node = graph.nodes[step.node];
  CostShape shape;
  shape.rows = rows_of(graph, node.out, pass);
  shape.in_rows = rows_of(graph, node.in, pass);
  shape.position = pass.position;
  if (node.op == graph::Op::kAttention || node.op == graph::Op::kKvWrite)
    shape.kv_bytes = pass.kv.layer(node.kv_layer).element == kernels::KvElement::kF16 ? 2 : 4;
  StepCost cost;
  switch (step.kind) {
    case StepKind::kLinear:
      shape.weight = step.weight;
      shape.weight_rows = fixed.parts[step.weight][step.part].rows;
      cost = node_cost(graph, node, shape);
      break;
    case StepKind::kExpertLinear:
      shape.weight = fixed.expert_layers[step.expert_layer].matrices[step.expert_matrix].weight;
      shape.weight_rows = graph.weights[shape.weight].rows;
      cost = node_cost(graph, node, shape);
      break;
    case StepKind::kQuantizeAct:
    case StepKind::kExpertQuantize:  // f32 in, int8 and a scale a group out
      cost.bytes = uint64_t{shape.in_rows} * node.in.width * 5;
      break;
    case StepKind::kExpertGroup:
      cost.bytes = uint64_t{shape.rows} * node.top_k * 8;
      break;
    default:
      cost = node_cost(graph, node, shape);
  }
  if (step.kind == StepKind::kAddRmsNorm) cost.bytes += uint64_t{shape.rows} * node.out.width * 4;
  return {node.layer, step.kernel, step.shape, 0, cost.bytes, cost.operations, 1};
}

}  // namespace doppler::gpu_exec
