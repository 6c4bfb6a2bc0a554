#pragma once
// Small random models of both families' shape, built node by node, with their weights in memory.
#include <cmath>
#include <cstdint>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "base/quants.h"
#include "graph/graph.h"
#include "graph/weights.h"

namespace doppler::testing {

/// Weights in memory. Counts what is asked of it.
class MemoryWeights final : public graph::WeightSource {
 public:
  std::vector<std::byte>& add(const std::string& name) {
    return items_.emplace_back(name, std::vector<std::byte>()).second;
  }
  Result<graph::WeightData> load(const graph::Weight& weight) const override {
    for (const auto& [name, bytes] : items_)
      if (name == weight.name)
        return graph::WeightData{bytes, row_bytes(weight.dtype, weight.columns), nullptr};
    return fail(ErrorCode::kNotFound, "[test] no weight {}", weight.name);
  }
  void release(const graph::Weight&) const override { ++released; }
  mutable int released = 0;

 private:
  std::vector<std::pair<std::string, std::vector<std::byte>>> items_;
};

struct TinyShape {
  bool gemma = true;  // norms after attention and feed-forward, q/k norms, GELU, window, soft caps
  uint32_t layers = 3, hidden = 64, ffn = 96, heads = 4, kv_heads = 2, head_dim = 32, vocab = 300;
  uint32_t window = 5;
  DType matrix = DType::kQ8_0, second = DType::kQ4_0, embedding = DType::kQ8_0;
};

struct TinyModel {
  graph::Graph graph;
  std::unique_ptr<MemoryWeights> weights = std::make_unique<MemoryWeights>();
};

class TinyBuilder {
 public:
  explicit TinyBuilder(const TinyShape& shape) : s_(shape), random_(7) {}

  TinyModel build() {
    graph::Graph& g = model_.graph;
    g.max_context = 4096;
    for (const float base : {10000.0f, 1000000.0f}) {
      graph::RopeTable& table = g.rope_tables.emplace_back();
      for (uint32_t i = 0; i < s_.head_dim / 2; ++i)
        table.inv_freq.push_back(
            std::pow(base, -2.0f * static_cast<float>(i) / static_cast<float>(s_.head_dim)));
    }
    const graph::WeightId embedding = matrix("embedding", s_.embedding, s_.vocab, s_.hidden);
    graph::View x = value("embed", s_.hidden);
    graph::Node& embed = node(graph::Op::kEmbed, {}, x, "embed");
    embed.weights = {embedding};
    embed.scale = s_.gemma ? 8.0f : 1.0f;
    for (uint32_t i = 0; i < s_.layers; ++i) x = layer(i, x);
    layer_ = -1;
    selected_ = true;
    const graph::View kept = value("selected", s_.hidden);
    node(graph::Op::kSelectRows, x, kept, "");
    const graph::View last = norm(kept, "final_norm");
    const graph::View logits = value("logits", s_.vocab);
    node(graph::Op::kLinear, last, logits, "logits").weights = {
        s_.gemma ? embedding : matrix("head", s_.matrix, s_.vocab, s_.hidden)};
    if (s_.gemma) node(graph::Op::kSoftcap, logits, logits, "capped").softcap = 20.0f;
    g.logits = logits;
    return std::move(model_);
  }

 private:
  graph::View value(const std::string& name, uint32_t width) {
    model_.graph.values.push_back({name, width, selected_});
    return {static_cast<uint32_t>(model_.graph.values.size() - 1), 0, width};
  }
  static graph::View slice(graph::View v, uint32_t offset, uint32_t width) {
    return {v.value, v.offset + offset, width};
  }

  graph::WeightId add_weight(const std::string& name, DType dtype, uint32_t rows, uint32_t columns,
                             float mean, float sd) {
    const std::string full = name + "." + std::to_string(model_.graph.weights.size());
    model_.graph.weights.push_back({full, dtype, rows, columns});
    const DTypeInfo& info = dtype_info(dtype);
    const size_t padded = (columns + info.block_elems - 1) / info.block_elems * info.block_elems;
    std::normal_distribution<float> normal(mean, sd);
    std::vector<std::byte>& bytes = model_.weights->add(full);
    bytes.resize(rows * row_bytes(dtype, columns));
    std::vector<float> row(padded);
    for (uint32_t r = 0; r < rows; ++r) {
      for (uint32_t c = 0; c < padded; ++c) row[c] = c < columns ? normal(random_) : 0.0f;
      quantize(dtype, row.data(), padded, bytes.data() + r * row_bytes(dtype, columns));
    }
    return static_cast<graph::WeightId>(model_.graph.weights.size() - 1);
  }
  graph::WeightId matrix(const std::string& name, DType dtype, uint32_t rows, uint32_t columns) {
    return add_weight(name, dtype, rows, columns, 0, 1.0f / std::sqrt(static_cast<float>(columns)));
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
  void norm_into(graph::View in, graph::View out, uint32_t group, const std::string& tap) {
    graph::Node& n = node(graph::Op::kRmsNorm, in, out, tap);
    n.group = group;
    n.eps = 1e-6f;
    n.weight_offset = s_.gemma ? 1.0f : 0.0f;
    n.weights = {add_weight(tap, DType::kF32, 1, group, s_.gemma ? 0.0f : 1.0f, 0.1f)};
  }
  graph::View norm(graph::View in, const std::string& tap) {
    const graph::View out = value(tap, in.width);
    norm_into(in, out, in.width, tap);
    return out;
  }
  graph::View add(graph::View a, graph::View b, const std::string& tap) {
    const graph::View out = value(tap, a.width);
    node(graph::Op::kAdd, a, out, tap).in2 = b;
    return out;
  }
  graph::View linear(graph::View in, uint32_t rows, DType dtype, const std::string& tap) {
    const graph::View out = value(tap, rows);
    node(graph::Op::kLinear, in, out, tap).weights = {matrix(tap, dtype, rows, in.width)};
    return out;
  }

  graph::View layer(uint32_t index, graph::View x) {
    layer_ = static_cast<int32_t>(index);
    const bool sliding = s_.gemma && index % 2 == 0;
    const uint32_t q_width = s_.heads * s_.head_dim, kv_width = s_.kv_heads * s_.head_dim;
    const graph::View h = norm(x, "attn_norm");
    const graph::View qkv = value("qkv", q_width + 2 * kv_width);
    const graph::WeightId wq = matrix("q", s_.matrix, q_width, s_.hidden),
                          wk = matrix("k", s_.second, kv_width, s_.hidden);
    const graph::WeightId wv = matrix("v", DType::kF16, kv_width, s_.hidden);
    node(graph::Op::kLinear, h, qkv, "qkv").weights = {wq, wk, wv};
    const graph::View q = slice(qkv, 0, q_width), k = slice(qkv, q_width, kv_width);
    const graph::View v = slice(qkv, q_width + kv_width, kv_width);
    if (s_.gemma) {
      norm_into(q, q, s_.head_dim, "q_norm");
      norm_into(k, k, s_.head_dim, "k_norm");
    }
    for (const graph::View& heads : {q, k}) {
      graph::Node& rope = node(graph::Op::kRope, heads, heads, "rope");
      rope.group = s_.head_dim;
      rope.rope_table = sliding ? 0 : 1;
      rope.rope_interleaved = !s_.gemma;
    }
    model_.graph.kv_layers.push_back({s_.kv_heads, s_.head_dim, sliding ? s_.window : 0});
    graph::Node& write = node(graph::Op::kKvWrite, k, {}, "");
    write.in2 = v;
    write.kv_layer = index;
    const graph::View heads = value("heads", q_width);
    graph::Node& attention = node(graph::Op::kAttention, q, heads, "heads");
    attention.group = s_.head_dim;
    attention.scale = 1.0f / std::sqrt(static_cast<float>(s_.head_dim));
    attention.softcap = s_.gemma ? 30.0f : 0.0f;
    attention.kv_layer = index;
    graph::View out = linear(heads, s_.hidden, s_.second, "attn_out");
    if (s_.gemma) out = norm(out, "post_attn_norm");
    x = add(x, out, "attn_residual");
    const graph::View gate_up = value("gate_up", 2 * s_.ffn);
    const graph::View normed = norm(x, "ffn_norm");
    const graph::WeightId gate = matrix("gate", s_.matrix, s_.ffn, s_.hidden),
                          up = matrix("up", s_.matrix, s_.ffn, s_.hidden);
    node(graph::Op::kLinear, normed, gate_up, "gate_up").weights = {gate, up};
    const graph::View act = value("act", s_.ffn);
    node(graph::Op::kGatedAct, gate_up, act, "act").activation =
        s_.gemma ? graph::Activation::kGeluTanh : graph::Activation::kSilu;
    graph::View fed = linear(act, s_.hidden, s_.matrix, "ffn_out");
    if (s_.gemma) fed = norm(fed, "post_ffn_norm");
    return add(x, fed, "layer_out");
  }

  TinyShape s_;
  std::mt19937 random_;
  TinyModel model_;
  int32_t layer_ = -1;
  bool selected_ = false;
};

inline TinyModel tiny_model(const TinyShape& shape) { return TinyBuilder(shape).build(); }

}  // namespace doppler::testing
