#include "exec/gpu/expert_layers.h"

#include <algorithm>

#include "kernels/route/plan.h"
#include "kernels/weights/packed.h"

namespace doppler::gpu_exec {
namespace {

using graph::kNone;
using graph::Op;

Result<void> add_matrices(const graph::Graph& graph, uint32_t node_index, ExpertLayer& layer) {
  const graph::Node& node = graph.nodes[node_index];
  uint32_t column = 0;
  for (size_t i = 0; i < node.weights.size(); ++i) {
    const graph::Weight& weight = graph.weights[node.weights[i]];
    if (weight.experts != layer.experts || node.top_k != layer.top_k)
      return fail(ErrorCode::kUnsupported, "[gpu] {} of {} experts, {} a token, wanted; got {} and {}",
                  weight.name, layer.experts, layer.top_k, weight.experts, node.top_k);
    layer.matrices.push_back(
        {node_index, node.weights[i], node.biases.empty() ? kNone : node.biases[i], column});
    column += weight.rows;
  }
  layer.last = node_index;
  return {};
}

ExpertPool pool_for(const graph::Graph& graph, const ExpertLayer& layer) {
  ExpertPool pool;
  pool.top_k = layer.top_k;
  for (const ExpertMatrix& matrix : layer.matrices) {
    const graph::Weight& weight = graph.weights[matrix.weight];
    const bool bias = matrix.bias != kNone;
    pool.matrices.push_back({weight.dtype, weight.rows, weight.columns, bias, {}});
    const kernels::PackedLayout one = kernels::packed_layout(weight.dtype, 1, weight.columns);
    const uint64_t words = uint64_t{one.lo.words} + one.hi.words + one.scale.words + one.super.words;
    pool.slot_bytes += (words + (bias ? 1 : 0)) * weight.rows * 4;
  }
  return pool;
}

bool alike(const ExpertPool& a, const ExpertPool& b) {
  return std::equal(a.matrices.begin(), a.matrices.end(), b.matrices.begin(), b.matrices.end(),
                    [](const ExpertPool::Matrix& x, const ExpertPool::Matrix& y) {
                      return x.dtype == y.dtype && x.rows == y.rows && x.columns == y.columns &&
                             x.bias == y.bias;
                    });
}

/// Shares the memory out: first what a token needs of each pool, then by what the pools would like.
Result<void> share_memory(std::vector<ExpertPool>& pools, uint64_t memory_bytes) {
  uint64_t least = 0, wish = 0;
  for (const ExpertPool& pool : pools) {
    least += pool.top_k * pool.slot_bytes;
    wish += (pool.experts - pool.top_k) * pool.slot_bytes;
  }
  if (memory_bytes < least) {
    std::string parts;
    for (const ExpertPool& pool : pools)
      parts +=
          fmt::format("{}{} experts of {} bytes", parts.empty() ? "" : " and ", pool.top_k, pool.slot_bytes);
    return fail(ErrorCode::kBadInput,
                "[gpu] an --expert-memory of at least {} bytes wanted (a layer runs {} a token), got {}",
                least, parts, memory_bytes);
  }
  const double part =
      wish == 0 ? 0 : std::min(1.0, static_cast<double>(memory_bytes - least) / static_cast<double>(wish));
  for (ExpertPool& pool : pools) {
    const auto more = static_cast<uint64_t>(part * static_cast<double>(pool.experts - pool.top_k));
    pool.slots = static_cast<uint32_t>(std::min<uint64_t>(pool.top_k + more, pool.experts));
  }
  return {};
}

Result<void> split(ExpertPool& pool, const gpu::Caps& caps) {
  for (ExpertPool::Matrix& matrix : pool.matrices) {
    const auto rows =
        static_cast<uint32_t>(std::min<uint64_t>(uint64_t{pool.slots} * matrix.rows, UINT32_MAX / 2));
    const uint32_t most =
        kernels::rows_per_part(matrix.dtype, rows, matrix.columns, caps.max_binding_bytes) / matrix.rows;
    if (most == 0)
      return fail(ErrorCode::kUnsupported,
                  "[gpu] an expert's {} x {} {} matrix exceeds the {} bytes that {} can bind", matrix.rows,
                  matrix.columns, dtype_name(matrix.dtype), caps.max_binding_bytes, caps.adapter);
    for (uint32_t first = 0; first < pool.slots; first += most)
      matrix.parts.push_back({first, std::min(most, pool.slots - first)});
  }
  return {};
}

}  // namespace

Result<std::vector<ExpertLayer>> find_expert_layers(const graph::Graph& graph) {
  std::vector<ExpertLayer> layers;
  for (uint32_t i = 0; i < graph.nodes.size(); ++i) {
    const graph::Node& node = graph.nodes[i];
    if (node.op == Op::kRoute) {
      if (node.in.width > kernels::kMaxExperts || node.top_k > kernels::kMaxTopK)
        return fail(ErrorCode::kUnsupported,
                    "[gpu] at most {} experts, {} of them a token, wanted; got {} and {}; use --device cpu",
                    kernels::kMaxExperts, kernels::kMaxTopK, node.in.width, node.top_k);
      layers.push_back({i, i, node.in.width, node.top_k, {}, 0});
    }
    if (node.op != Op::kExpertLinear) continue;
    if (layers.empty() || graph.nodes[layers.back().route].out.value != node.in2.value)
      return fail(ErrorCode::kUnsupported, "[gpu] the routes of the router before it wanted for {}",
                  node.tap);
    DOPPLER_CHECK_OK(add_matrices(graph, i, layers.back()));
  }
  return layers;
}

Result<std::vector<ExpertPool>> plan_expert_pools(const graph::Graph& graph, std::vector<ExpertLayer>& layers,
                                                  uint64_t memory_bytes, const gpu::Caps& caps) {
  std::vector<ExpertPool> pools;
  for (ExpertLayer& layer : layers) {
    ExpertPool pool = pool_for(graph, layer);
    layer.pool = static_cast<uint32_t>(pools.size());
    if (memory_bytes > 0)
      for (uint32_t i = 0; i < pools.size(); ++i)
        if (alike(pools[i], pool)) layer.pool = i;
    if (layer.pool == pools.size()) pools.push_back(std::move(pool));
    ExpertPool& own = pools[layer.pool];
    own.experts += layer.experts;
    own.top_k = std::max(own.top_k, layer.top_k);
    own.slots = layer.experts;
  }
  if (memory_bytes > 0) DOPPLER_CHECK_OK(share_memory(pools, memory_bytes));
  for (ExpertPool& pool : pools) DOPPLER_CHECK_OK(split(pool, caps));
  return pools;
}

uint32_t expert_layer_of(const std::vector<ExpertLayer>& layers, uint32_t node) {
  for (uint32_t i = 0; i < layers.size(); ++i)
    if (node > layers[i].route && node <= layers[i].last) return i;
  return kNone;
}

}  // namespace doppler::gpu_exec
