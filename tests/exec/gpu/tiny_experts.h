#pragma once
// Small random mixtures of experts, built node by node, with their weights in memory.
#include <atomic>
#include <cmath>
#include <cstdint>
#include <map>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "base/quants.h"
#include "graph/graph.h"
#include "graph/weights.h"

namespace doppler::testing {

/// Weights and stacks in memory. May be told to fail on an expert.
class StackWeights final : public graph::WeightSource {
 public:
  std::vector<std::byte>& add(const std::string& name) { return items_[name]; }

  Result<graph::WeightData> load(const graph::Weight& weight) const override {
    const auto found = items_.find(weight.name);
    if (found == items_.end()) return fail(ErrorCode::kNotFound, "[test] no weight {}", weight.name);
    return graph::WeightData{found->second, row_bytes(weight.dtype, weight.columns), nullptr};
  }
  Result<graph::WeightData> load_expert(const graph::Weight& weight, uint32_t expert) const override {
    if (failing_expert == static_cast<int>(expert))
      return fail(ErrorCode::kIo, "[test] expert {} cannot be read", expert);
    DOPPLER_TRY(graph::WeightData data, load(weight));
    const uint64_t size = data.row_bytes * weight.rows;
    data.bytes = data.bytes.subspan(size * expert, size);
    ++experts_read;
    return data;
  }
  void release(const graph::Weight&) const override {}

  std::atomic<int> failing_expert = -1;
  mutable std::atomic<int> experts_read = 0;

 private:
  std::map<std::string, std::vector<std::byte>> items_;
};

struct ExpertShape {
  uint32_t experts = 8, top_k = 2, layers = 3, hidden = 64, ffn = 96, vocab = 100;
  DType gate = DType::kQ8_0, up = DType::kQ8_0, down = DType::kQ4_0;
  DType last_down = DType::kQ4_0;  // of the last layer
  bool bias = false;
  graph::Routing routing = graph::Routing::kSoftmaxOfChosen;
};

struct ExpertModel {
  graph::Graph graph;
  std::unique_ptr<StackWeights> weights = std::make_unique<StackWeights>();
};

class ExpertBuilder {
 public:
  explicit ExpertBuilder(const ExpertShape& shape) : s_(shape), random_(11) {}

  ExpertModel build() {
    graph::Graph& g = model_.graph;
    g.max_context = 4096;
    graph::View x = value("embed", s_.hidden);
    node(graph::Op::kEmbed, {}, x, "embed").weights = {weight("embedding", DType::kF32, s_.vocab, s_.hidden)};
    for (uint32_t i = 0; i < s_.layers; ++i) x = layer(i, x);
    layer_ = -1;
    selected_ = true;
    const graph::View kept = value("selected", s_.hidden);
    node(graph::Op::kSelectRows, x, kept, "");
    const graph::View last = norm(kept, "final_norm"), logits = value("logits", s_.vocab);
    node(graph::Op::kLinear, last, logits, "logits").weights = {
        weight("head", DType::kF32, s_.vocab, s_.hidden)};
    g.logits = logits;
    return std::move(model_);
  }

 private:
  graph::View value(const std::string& name, uint32_t width) {
    model_.graph.values.push_back({name, width, selected_});
    return {static_cast<uint32_t>(model_.graph.values.size() - 1), 0, width};
  }
  graph::Node& node(graph::Op op, graph::View in, graph::View out, const std::string& tap) {
    graph::Node& n = model_.graph.nodes.emplace_back();
    n.op = op;
    n.in = in;
    n.out = out;
    n.layer = layer_;
    n.tap = tap;
    return n;
  }
  graph::WeightId weight(const std::string& name, DType dtype, uint32_t rows, uint32_t columns,
                         uint32_t experts = 0) {
    graph::Graph& g = model_.graph;
    const std::string full = name + "." + std::to_string(g.weights.size());
    g.weights.push_back({full, dtype, rows, columns, experts});
    const DTypeInfo& info = dtype_info(dtype);
    const size_t padded = (columns + info.block_elems - 1) / info.block_elems * info.block_elems;
    std::normal_distribution<float> normal(0, 1.0f / std::sqrt(static_cast<float>(columns)));
    std::vector<std::byte>& bytes = model_.weights->add(full);
    const size_t all = size_t{rows} * std::max(experts, 1u);
    bytes.resize(all * row_bytes(dtype, columns));
    std::vector<float> row(padded);
    for (size_t r = 0; r < all; ++r) {
      for (uint32_t c = 0; c < padded; ++c) row[c] = c < columns ? normal(random_) : 0.0f;
      quantize(dtype, row.data(), padded, bytes.data() + r * row_bytes(dtype, columns));
    }
    return static_cast<graph::WeightId>(g.weights.size() - 1);
  }
  graph::View norm(graph::View in, const std::string& tap) {
    const graph::View out = value(tap, in.width);
    graph::Node& n = node(graph::Op::kRmsNorm, in, out, tap);
    n.group = in.width;
    n.eps = 1e-6f;
    n.weight_offset = 1;
    n.weights = {weight(tap, DType::kF32, 1, in.width)};
    return out;
  }
  graph::View expert_linear(graph::View in, graph::View routes, std::vector<DType> dtypes, uint32_t rows,
                            uint32_t columns, const std::string& tap) {
    const auto count = static_cast<uint32_t>(dtypes.size());
    const graph::View out = value(tap, count * rows * s_.top_k);
    std::vector<graph::WeightId> weights, biases;
    for (const DType dtype : dtypes) {
      weights.push_back(weight(tap, dtype, rows, columns, s_.experts));
      // The first weight of a pair goes without.
      biases.push_back(s_.bias && weights.size() == count
                           ? weight(tap + "_bias", DType::kF16, s_.experts, rows)
                           : graph::kNone);
    }
    graph::Node& n = node(graph::Op::kExpertLinear, in, out, tap);
    n.in2 = routes;
    n.top_k = s_.top_k;
    n.weights = weights;
    if (s_.bias) n.biases = biases;
    return out;
  }

  graph::View layer(uint32_t index, graph::View x) {
    layer_ = static_cast<int32_t>(index);
    const graph::View h = norm(x, "ffn_norm");
    const graph::View logits = value("router", s_.experts), routes = value("routes", 2 * s_.top_k);
    const graph::WeightId router = weight("router", DType::kQ8_0, s_.experts, s_.hidden);
    node(graph::Op::kLinear, h, logits, "router").weights = {router};
    graph::Node& route = node(graph::Op::kRoute, logits, routes, "routes");
    route.top_k = s_.top_k;
    route.routing = s_.routing;
    const graph::View gate_up =
        expert_linear(h, routes, {s_.gate, s_.up}, s_.ffn, s_.hidden, "expert_gate_up");
    const graph::View act = value("expert_act", s_.ffn * s_.top_k);
    node(graph::Op::kGatedAct, gate_up, act, "expert_act").group = 2 * s_.ffn;
    const DType down_type = index + 1 == s_.layers ? s_.last_down : s_.down;
    const graph::View down = expert_linear(act, routes, {down_type}, s_.hidden, s_.ffn, "expert_down");
    const graph::View fed = value("ffn_out", s_.hidden), out = value("layer_out", s_.hidden);
    graph::Node& sum = node(graph::Op::kExpertSum, down, fed, "ffn_out");
    sum.in2 = routes;
    sum.top_k = s_.top_k;
    node(graph::Op::kAdd, x, out, "layer_out").in2 = fed;
    return out;
  }

  ExpertShape s_;
  std::mt19937 random_;
  ExpertModel model_;
  int32_t layer_ = -1;
  bool selected_ = false;
};

inline ExpertModel expert_model(const ExpertShape& shape) { return ExpertBuilder(shape).build(); }

}  // namespace doppler::testing
