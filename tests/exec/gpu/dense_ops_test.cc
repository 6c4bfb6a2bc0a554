// Every op beyond the two families of tiny_graph.h, on the device and on the CPU: an encoder made of them,
// and the families with other heads, vocabularies, RoPE forms and sinks.
#include <doctest/doctest.h>

#include <algorithm>

#include "exec/gpu/gpu_executor.h"
#include "exec/gpu/plan.h"
#include "exec/gpu/tiny_graph.h"
#include "gpu/test_device.h"

namespace doppler {
namespace {

using graph::Activation;
using graph::Op;
using testing::tiny_model;
using testing::TinyModel;

std::shared_ptr<gpu::Device> shared_device() {
  static const std::shared_ptr<gpu::Device> device = gpu::open_test_device();
  return device;
}

template <class T>
T take(Result<T> result) {
  if (!result) FAIL(result.error().message);
  return std::move(*result);
}

double nmse(std::span<const float> got, std::span<const float> want) {
  REQUIRE(got.size() == want.size());
  double error = 0, power = 0;
  for (size_t i = 0; i < got.size(); ++i) {
    error += (double{got[i]} - want[i]) * (double{got[i]} - want[i]);
    power += double{want[i]} * want[i];
  }
  return error / power;
}

graph::WeightId add_weight(TinyModel& model, const std::string& name, DType dtype, uint32_t rows,
                           uint32_t columns, float mean, float deviation) {
  model.graph.weights.push_back({name, dtype, rows, columns});
  const DTypeInfo& info = dtype_info(dtype);
  const size_t padded = (columns + info.block_elems - 1) / info.block_elems * info.block_elems;
  std::mt19937 random(static_cast<uint32_t>(model.graph.weights.size()));
  std::normal_distribution<float> normal(mean, deviation);
  std::vector<std::byte>& bytes = model.weights->add(name);
  bytes.resize(rows * row_bytes(dtype, columns));
  std::vector<float> row(padded);
  for (uint32_t r = 0; r < rows; ++r) {
    for (uint32_t c = 0; c < padded; ++c) row[c] = c < columns ? normal(random) : 0.0f;
    quantize(dtype, row.data(), padded, bytes.data() + r * row_bytes(dtype, columns));
  }
  return static_cast<graph::WeightId>(model.graph.weights.size() - 1);
}

// An encoder: learned positions, layer norms, biases on every product, attention without an order, gates.
class Encoder {
 public:
  Encoder(Op pooling, Activation activation, DType matrix) : activation_(activation), matrix_(matrix) {
    graph::Graph& g = model_.graph;
    g.max_context = kPositions;
    graph::View x = value("embed", kHidden);
    node(Op::kEmbed, {}, x).weights = {weight(DType::kF16, kVocab, kHidden, 0, 1)};
    x = with_weight(Op::kAddPosition, x, weight(DType::kBF16, kPositions, kHidden, 0, 1));
    x = with_weight(Op::kAddVector, x, weight(DType::kF32, 2, kHidden, 0, 1));
    x = norm(x);
    for (layer_ = 0; layer_ < 2; ++layer_) x = layer(x);
    layer_ = -1;
    selected_ = true;
    const graph::View pooled = value("pooled", kHidden), unit = value("embedding", kHidden);
    node(pooling, x, pooled);
    node(Op::kL2Norm, pooled, unit).eps = 1e-12f;
    g.logits = unit;
    g.vocab = kVocab;
    g.embedder = true;
  }
  static constexpr uint32_t kVocab = 77, kPositions = 40, kHidden = 48, kHeads = 3, kHeadDim = 16, kFfn = 50;

  TinyModel build() { return std::move(model_); }

 private:
  graph::View value(const std::string& name, uint32_t width) {
    model_.graph.values.push_back({name, width, selected_});
    return {static_cast<uint32_t>(model_.graph.values.size() - 1), 0, width};
  }
  graph::WeightId weight(DType dtype, uint32_t rows, uint32_t columns, float mean, float deviation) {
    const std::string name = fmt::format("w{}", model_.graph.weights.size());
    return add_weight(model_, name, dtype, rows, columns, mean, deviation);
  }
  graph::Node& node(Op op, graph::View in, graph::View out) {
    graph::Node& n = model_.graph.nodes.emplace_back();
    n.op = op;
    n.in = in;
    n.out = out;
    n.layer = layer_;
    n.tap = fmt::format("{}{}", op_name(op), model_.graph.nodes.size());
    return n;
  }
  graph::View with_weight(Op op, graph::View in, graph::WeightId id) {
    const graph::View out = value("rows", in.width);
    node(op, in, out).weights = {id};
    return out;
  }
  graph::View norm(graph::View in) {
    const graph::View out = value("norm", in.width);
    graph::Node& n = node(Op::kLayerNorm, in, out);
    n.weights = {weight(DType::kF16, 1, in.width, 1, 0.1f)};
    n.biases = {weight(DType::kF32, 1, in.width, 0, 0.1f)};
    n.eps = 1e-5f;
    return out;
  }
  graph::View linear(graph::View in, std::initializer_list<uint32_t> rows) {
    uint32_t width = 0;
    for (const uint32_t count : rows) width += count;
    const graph::View out = value("linear", width);
    std::vector<graph::WeightId> weights, biases;
    for (const uint32_t count : rows) {
      weights.push_back(weight(matrix_, count, in.width, 0, 0.15f));
      // The second of several has none.
      biases.push_back(biases.size() == 1 ? graph::kNone : weight(DType::kBF16, 1, count, 0, 0.5f));
    }
    graph::Node& n = node(Op::kLinear, in, out);
    n.weights = std::move(weights);
    n.biases = std::move(biases);
    return out;
  }
  graph::View two(Op op, graph::View a, graph::View b) {
    const graph::View out = value("two", a.width);
    node(op, a, out).in2 = b;
    return out;
  }
  graph::View act(graph::View in, Activation activation) {
    const graph::View out = value("act", in.width);
    node(Op::kAct, in, out).activation = activation;
    return out;
  }
  graph::View layer(graph::View x) {
    constexpr uint32_t kWidth = kHeads * kHeadDim;
    const graph::View qkv = linear(x, {kWidth, kWidth, kWidth});
    const auto index = static_cast<uint32_t>(model_.graph.kv_layers.size());
    model_.graph.kv_layers.push_back({kHeads, kHeadDim, 0});
    graph::Node& write = node(Op::kKvWrite, {qkv.value, kWidth, kWidth}, {});
    write.in2 = {qkv.value, 2 * kWidth, kWidth};
    write.kv_layer = index;
    write.tap.clear();
    const graph::View seen = value("seen", kWidth);
    graph::Node& attention = node(Op::kAttention, {qkv.value, 0, kWidth}, seen);
    attention.group = kHeadDim;
    attention.scale = 0.25f;
    attention.kv_layer = index;
    attention.causal = false;
    x = norm(two(Op::kAdd, x, linear(seen, {kHidden})));
    // One product over the whole width, one with a single column: sigmoid(x w).
    const graph::View up = two(Op::kMul, act(linear(x, {kFfn}), activation_), linear(x, {kFfn}));
    const graph::View fed = two(Op::kMul, linear(up, {kHidden}), act(linear(x, {1}), Activation::kSigmoid));
    return norm(two(Op::kAdd, x, fed));
  }

  TinyModel model_;
  Activation activation_;
  DType matrix_;
  int32_t layer_ = -1;
  bool selected_ = false;
};

std::vector<int32_t> some_ids(size_t count, uint32_t vocab) {
  std::vector<int32_t> ids(count);
  for (size_t i = 0; i < count; ++i) ids[i] = static_cast<int32_t>((i * 7919 + 13) % vocab);
  return ids;
}

std::vector<float> embedding_of(Executor& executor, std::span<const int32_t> ids) {
  const auto kv = take(executor.make_kv(64, KvType::kF32));
  std::vector<float> out(Encoder::kHidden);
  const auto done = executor.forward(*kv, ids, LogitRows::kLast, out);
  if (!done) FAIL(done.error().message);
  return out;
}

std::unique_ptr<Executor> on_gpu(const TinyModel& model, const GpuOptions& options) {
  return take(make_gpu_executor(shared_device(), model.graph, *model.weights, options));
}

std::unique_ptr<Executor> on_cpu(const TinyModel& model) {
  return take(make_cpu_executor(model.graph, *model.weights, {Precision::kExact, 1, 512}));
}

/// Logits of every position, in chunks of `chunk`.
std::vector<float> all_logits(Executor& executor, const TinyModel& model, size_t count, size_t chunk,
                              uint32_t capacity = 0) {
  const uint32_t width = model.graph.logits.width;
  const auto ids = some_ids(count, width);
  const auto kv =
      take(executor.make_kv(capacity == 0 ? static_cast<uint32_t>(count) : capacity, KvType::kF32));
  std::vector<float> logits(count * width);
  for (size_t at = 0; at < count; at += chunk) {
    const size_t n = std::min(chunk, count - at);
    const auto done = executor.forward(*kv, std::span(ids).subspan(at, n), LogitRows::kAll,
                                       std::span(logits).subspan(at * width, n * width));
    if (!done) FAIL(done.error().message);
  }
  return logits;
}

}  // namespace

TEST_CASE("an encoder of every op gives the CPU's embedding") {
  for (const Op pooling : {Op::kMeanRows, Op::kFirstRow, Op::kSelectRows})
    for (const Activation activation : {Activation::kGeluErf, Activation::kGeluTanh, Activation::kGeluQuick,
                                        Activation::kRelu, Activation::kSilu})
      for (const DType matrix : {DType::kF32, DType::kQ8_0}) {
        CAPTURE(op_name(pooling));
        CAPTURE(static_cast<int>(activation));
        CAPTURE(dtype_name(matrix));
        const TinyModel model = Encoder(pooling, activation, matrix).build();
        const auto exact = on_gpu(model, {.precision = Precision::kExact, .max_chunk = 64});
        const auto cpu = on_cpu(model);
        for (const size_t count : {1u, 2u, 37u}) {
          CAPTURE(count);
          const auto ids = some_ids(count, Encoder::kVocab);
          CHECK(nmse(embedding_of(*exact, ids), embedding_of(*cpu, ids)) < 1e-9);
        }
        if (matrix == DType::kF32) continue;
        const auto fast = on_gpu(model, {.precision = Precision::kFast, .max_chunk = 64});
        const auto ids = some_ids(37, Encoder::kVocab);
        const double error = nmse(embedding_of(*fast, ids), embedding_of(*cpu, ids));
        CHECK(error < 3e-3);
        CHECK(error > 1e-9);  // it did take the int8 path
      }
}

TEST_CASE("an encoder whose tensors are split gives the same, biases included") {
  const TinyModel model = Encoder(Op::kMeanRows, Activation::kGeluErf, DType::kF32).build();
  const auto ids = some_ids(30, Encoder::kVocab);
  const auto whole = on_gpu(model, {.precision = Precision::kExact, .max_chunk = 64});
  // Two rows of 48 values: positions, types and products come in parts.
  const GpuOptions options{.precision = Precision::kExact, .max_chunk = 64, .max_binding_bytes = 2048};
  const auto fixed = take(
      gpu_exec::plan_static(model.graph, gpu_exec::planning_caps(shared_device()->caps(), options), options));
  CHECK(fixed.parts[1].size() > 1);
  CHECK(nmse(embedding_of(*on_gpu(model, options), ids), embedding_of(*whole, ids)) < 1e-12);
}

TEST_CASE("taps of an encoder tell every step that the CPU tells") {
  const TinyModel model = Encoder(Op::kMeanRows, Activation::kGeluErf, DType::kF32).build();
  const auto steps_of = [](Executor& executor) {
    std::vector<std::pair<std::string, std::vector<float>>> steps;
    executor.set_tap([&](const Tap& tap) {
      steps.emplace_back(fmt::format("{}.{}[{}x{}]", tap.layer, tap.name, tap.rows, tap.width),
                         std::vector<float>(tap.data.begin(), tap.data.end()));
    });
    embedding_of(executor, some_ids(6, Encoder::kVocab));
    return steps;
  };
  const auto gpu = steps_of(*on_gpu(model, {.precision = Precision::kExact, .max_chunk = 8}));
  const auto cpu = steps_of(*on_cpu(model));
  REQUIRE(gpu.size() == cpu.size());
  for (size_t i = 0; i < gpu.size(); ++i) {
    CAPTURE(cpu[i].first);
    CHECK(gpu[i].first == cpu[i].first);
    CHECK(nmse(gpu[i].second, cpu[i].second) < 1e-9);
  }
}

TEST_CASE("what an embedder cannot do is an error on both, with the same words") {
  const TinyModel model = Encoder(Op::kMeanRows, Activation::kGeluErf, DType::kF32).build();
  const auto gpu = on_gpu(model, {.max_chunk = 64});
  const auto cpu = on_cpu(model);
  const auto error_of = [&](Executor& executor, size_t count, LogitRows rows, size_t room, bool twice) {
    const auto kv = take(executor.make_kv(64, KvType::kF32));
    std::vector<float> out(room);
    const auto ids = some_ids(count, Encoder::kVocab);
    auto done = executor.forward(*kv, ids, rows, out);
    if (twice) done = executor.forward(*kv, ids, rows, out);
    return done ? std::string() : done.error().message.substr(5);  // without "[gpu]"
  };
  struct Case {
    size_t count;
    LogitRows rows;
    size_t room;
    bool twice;
    const char* says;
  };
  for (const Case& c : {Case{5, LogitRows::kLast, 48, true, "into an empty cache"},
                        Case{1, LogitRows::kAll, 48, false, "one row"},
                        Case{5, LogitRows::kLast, 77, false, "this one embeds"},
                        Case{41, LogitRows::kLast, 48, false, "at most 40 positions"}}) {
    CAPTURE(c.says);
    const std::string message = error_of(*gpu, c.count, c.rows, c.room, c.twice);
    CHECK(message.find(c.says) != std::string::npos);
    CHECK(message == error_of(*cpu, c.count, c.rows, c.room, c.twice));
  }
  CHECK(error_of(*gpu, 40, LogitRows::kLast, 48, false).empty());
}

TEST_CASE("heads of any multiple of 8, and vocabularies that divide by nothing") {
  for (const bool gemma : {true, false})
    for (const uint32_t head_dim : {8u, 24u, 40u, 80u, 96u, 112u, 256u, 320u}) {
      CAPTURE(gemma);
      CAPTURE(head_dim);
      const uint32_t vocab = 301 + head_dim / 8 * 2;
      const TinyModel model =
          tiny_model({.gemma = gemma, .layers = 2, .heads = 6, .head_dim = head_dim, .vocab = vocab});
      const auto gpu = on_gpu(model, {.precision = Precision::kExact, .max_chunk = 64});
      const auto want = all_logits(*on_cpu(model), model, 19, 19);
      CHECK(nmse(all_logits(*gpu, model, 19, 19), want) < 1e-9);
      CHECK(nmse(all_logits(*gpu, model, 19, 1), want) < 1e-9);
    }
}

TEST_CASE("heads that no kernel takes are refused by name") {
  for (const uint32_t head_dim : {12u, 1032u}) {
    const TinyModel model = tiny_model({.layers = 1, .head_dim = head_dim});
    const auto refused = make_gpu_executor(shared_device(), model.graph, *model.weights, {});
    REQUIRE_FALSE(refused);
    CHECK(refused.error().code == ErrorCode::kUnsupported);
    CHECK(refused.error().message.find(fmt::format("got {}", head_dim)) != std::string::npos);
  }
}

TEST_CASE("LongRoPE: the cache's room decides which table turns the heads, once and for all") {
  TinyModel model = tiny_model({.layers = 2});
  for (graph::RopeTable& table : model.graph.rope_tables) {
    for (const float frequency : table.inv_freq) table.long_inv_freq.push_back(frequency * 0.3f);
    table.long_above = 40;
    table.magnitude = 1.2f;
  }
  const auto gpu = on_gpu(model, {.precision = Precision::kExact, .max_chunk = 64});
  const auto cpu = on_cpu(model);
  std::vector<std::vector<float>> forms;
  for (const uint32_t capacity : {40u, 41u}) {
    CAPTURE(capacity);
    const auto want = all_logits(*cpu, model, 37, 37, capacity);
    CHECK(nmse(all_logits(*gpu, model, 37, 37, capacity), want) < 1e-9);
    CHECK(nmse(all_logits(*gpu, model, 37, 5, capacity), want) < 1e-9);
    forms.push_back(want);
  }
  CHECK(nmse(forms[0], forms[1]) > 1e-3);  // they do differ
}

TEST_CASE("part of a head rotated, in halves and in neighbouring pairs") {
  for (const bool gemma : {true, false}) {  // halves, pairs
    TinyModel model = tiny_model({.gemma = gemma, .layers = 2});
    for (graph::RopeTable& table : model.graph.rope_tables) table.inv_freq.resize(table.inv_freq.size() / 2);
    const auto gpu = on_gpu(model, {.precision = Precision::kExact, .max_chunk = 64});
    CHECK(nmse(all_logits(*gpu, model, 20, 20), all_logits(*on_cpu(model), model, 20, 20)) < 1e-9);
  }
}

TEST_CASE("attention sinks with windows and soft caps") {
  TinyModel model = tiny_model({.layers = 3});
  for (graph::Node& node : model.graph.nodes)
    if (node.op == Op::kAttention)
      node.weights = {add_weight(model, fmt::format("sinks{}", node.kv_layer), DType::kBF16, 1, 4, 0, 2)};
  const auto gpu = on_gpu(model, {.precision = Precision::kExact, .max_chunk = 64});
  const auto want = all_logits(*on_cpu(model), model, 37, 37);
  CHECK(nmse(all_logits(*gpu, model, 37, 37), want) < 1e-9);
  CHECK(nmse(all_logits(*gpu, model, 37, 1), want) < 1e-9);
}

TEST_CASE("gates of every kind, in groups and in turns") {
  for (const Activation activation : {Activation::kGeluErf, Activation::kRelu, Activation::kSwigluClamped})
    for (const bool interleaved : {false, true}) {
      CAPTURE(static_cast<int>(activation));
      CAPTURE(interleaved);
      TinyModel model = tiny_model({.layers = 2});
      for (graph::Node& node : model.graph.nodes) {
        if (node.op != Op::kGatedAct) continue;
        node.activation = activation;
        node.interleaved = interleaved;
        node.group = 64;  // of 192
        node.limit = 1.5f;
        node.alpha = 1.702f;
      }
      const auto gpu = on_gpu(model, {.precision = Precision::kExact, .max_chunk = 64});
      CHECK(nmse(all_logits(*gpu, model, 9, 9), all_logits(*on_cpu(model), model, 9, 9)) < 1e-9);
    }
}

}  // namespace doppler
