#include "exec/step_cost.h"

#include <algorithm>

#include "base/dtype.h"

namespace doppler {
namespace {

using graph::Op;

// Keys that the rows see, summed over the rows.
uint64_t keys_seen(const graph::KvLayer& layer, const CostShape& shape) {
  uint64_t keys = 0;
  for (uint32_t row = 0; row < shape.rows; ++row) {
    const uint64_t all = uint64_t{shape.position} + row + 1;
    keys += layer.window > 0 ? std::min<uint64_t>(all, layer.window) : all;
  }
  return keys;
}

StepCost attention_cost(const graph::Graph& graph, const graph::Node& node, const CostShape& shape) {
  const graph::KvLayer& layer = graph.kv_layers[node.kv_layer];
  const uint64_t span = layer.window > 0
                            ? std::min<uint64_t>(shape.position + shape.rows, layer.window + shape.rows - 1)
                            : uint64_t{shape.position} + shape.rows;
  StepCost cost;
  cost.bytes = 2 * span * layer.kv_heads * layer.head_dim * shape.kv_bytes;
  cost.operations = 4.0 * static_cast<double>(keys_seen(layer, shape)) * node.in.width;
  return cost;
}

}  // namespace

StepCost node_cost(const graph::Graph& graph, const graph::Node& node, const CostShape& shape) {
  StepCost cost;
  if (node.op == Op::kAttention) cost = attention_cost(graph, node, shape);
  const uint64_t in = node.in.value == graph::kNone ? 0 : node.in.width;
  const uint64_t in2 = node.in2.value == graph::kNone ? 0 : node.in2.width;
  const bool part = shape.weight != graph::kNone;
  const uint64_t out = part ? shape.weight_rows : node.out.value == graph::kNone ? 0 : node.out.width;
  cost.bytes += 4 * ((in + in2) * shape.in_rows + out * shape.rows);
  if (node.op == Op::kKvWrite) cost.bytes += (in + in2) * shape.in_rows * shape.kv_bytes;
  for (const graph::WeightId id : node.weights) {
    if (part && id != shape.weight) continue;
    const graph::Weight& weight = graph.weights[id];
    const uint64_t weight_rows = part ? shape.weight_rows : weight.rows;
    const uint64_t row = row_bytes(weight.dtype, weight.columns);
    const double products = 2.0 * static_cast<double>(weight_rows) * weight.columns;
    if (node.op == Op::kEmbed || node.op == Op::kAddPosition) {
      cost.bytes += row * shape.rows;
    } else if (node.op == Op::kExpertLinear) {
      const uint64_t used = std::min<uint64_t>(weight.experts, uint64_t{shape.rows} * node.top_k);
      cost.bytes += row * weight_rows * used;
      cost.operations += products * shape.rows * node.top_k;
    } else {
      cost.bytes += row * weight_rows;
      if (node.op == Op::kLinear) cost.operations += products * shape.rows;
    }
  }
  return cost;
}

}  // namespace doppler
