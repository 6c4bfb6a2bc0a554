// The executor as callers see it: errors, cache lengths, taps, row choices, buffers.
#include "exec/executor.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <map>

#include "exec/cpu/buffers.h"
#include "random_values.h"

namespace doppler::test {
namespace {

constexpr uint32_t kVocab = 11, kWidth = 6;

// embed -> norm -> attention with itself -> add -> select -> head.
graph::Graph small_graph() {
  graph::Graph g;
  g.weights = {{"embed", DType::kF32, kVocab, kWidth}, {"norm", DType::kF32, 1, kWidth}};
  const auto value = [&](const char* name, bool selected) {
    g.values.push_back({name, selected ? kWidth : kWidth, selected});
    return graph::View{static_cast<graph::ValueId>(g.values.size() - 1), 0, kWidth};
  };
  const graph::View x = value("x", false), n = value("n", false), a = value("a", false),
                    y = value("y", false);
  const graph::View s = value("s", true);
  g.values.push_back({"logits", kVocab, true});
  g.logits = {static_cast<graph::ValueId>(g.values.size() - 1), 0, kVocab};
  g.kv_layers = {{1, kWidth, 0}};
  const auto node = [&](graph::Op op, graph::View in, graph::View out, const char* tap) -> graph::Node& {
    graph::Node& added = g.nodes.emplace_back();
    added.op = op;
    added.in = in;
    added.out = out;
    added.tap = tap;
    return added;
  };
  node(graph::Op::kEmbed, {}, x, "embed").weights = {0};
  graph::Node& norm = node(graph::Op::kRmsNorm, x, n, "norm");
  norm.weights = {1};
  norm.group = kWidth;
  norm.eps = 1e-6f;
  node(graph::Op::kKvWrite, n, {}, "").in2 = n;
  graph::Node& attention = node(graph::Op::kAttention, n, a, "attn");
  attention.group = kWidth;
  node(graph::Op::kAdd, x, y, "sum").in2 = a;
  node(graph::Op::kSelectRows, y, s, "");
  node(graph::Op::kLinear, s, g.logits, "logits").weights = {0};
  return g;
}

class SmallWeights final : public graph::WeightSource {
 public:
  Result<graph::WeightData> load(const graph::Weight& weight) const override {
    const std::vector<float>& values = weight.name == "embed" ? embed : norm;
    return graph::WeightData{std::as_bytes(std::span(values)).first(values.size() * 4 - cut), kWidth * 4,
                             nullptr};
  }
  void release(const graph::Weight&) const override {}
  std::vector<float> embed = random_values(1, kVocab* kWidth), norm = random_values(2, kWidth);
  size_t cut = 0;
};

struct Fixture {
  SmallWeights weights;
  std::unique_ptr<Executor> executor;
  std::unique_ptr<KvCache> kv;
  Fixture() {
    executor = std::move(*make_cpu_executor(small_graph(), weights, {Precision::kExact, 2, 4}));
    kv = std::move(*executor->make_kv(6, KvType::kF32));
  }
  Result<void> forward(std::vector<int32_t> ids, LogitRows rows, std::vector<float>& logits) {
    logits.assign(rows == LogitRows::kNone ? 0 : (rows == LogitRows::kLast ? 1 : ids.size()) * kVocab, -1.0f);
    return executor->forward(*kv, ids, rows, logits);
  }
};

TEST_CASE("wrong requests are errors and leave the cache as it was") {
  Fixture f;
  std::vector<float> logits;
  REQUIRE(f.forward({1, 2, 3}, LogitRows::kLast, logits).has_value());
  REQUIRE(f.kv->length() == 3);
  const auto refused = [&](std::vector<int32_t> ids, LogitRows rows = LogitRows::kLast) {
    const auto done = f.forward(std::move(ids), rows, logits);
    REQUIRE_FALSE(done.has_value());
    CHECK(done.error().code == ErrorCode::kBadInput);
    CHECK(f.kv->length() == 3);
  };
  refused({});
  refused({-1});
  refused({static_cast<int32_t>(kVocab)});
  refused({1, 2, 3, 4, 5});  // more than a chunk
  refused({1, 2, 3, 4});     // more than the context holds
  std::vector<float> small(kVocab - 1);
  CHECK_FALSE(f.executor->forward(*f.kv, std::vector<int32_t>{1}, LogitRows::kLast, small).has_value());
  Fixture other;
  CHECK_FALSE(f.executor->forward(*other.kv, std::vector<int32_t>{1}, LogitRows::kNone, {}).has_value());
  CHECK(f.kv->length() == 3);
  REQUIRE(f.forward({1, 2, 3}, LogitRows::kNone, logits).has_value());
  CHECK(f.kv->length() == 6);
}

TEST_CASE("short weights and empty options are refused") {
  SmallWeights weights;
  weights.cut = 4;
  CHECK_FALSE(make_cpu_executor(small_graph(), weights, {}).has_value());
  CHECK_FALSE(make_cpu_executor(small_graph(), SmallWeights(), {Precision::kExact, 1, 0}).has_value());
  CHECK_FALSE(Fixture().executor->make_kv(0, KvType::kF16).has_value());
}

TEST_CASE("last and all rows agree, truncation forgets") {
  Fixture f;
  std::vector<float> all, last;
  REQUIRE(f.forward({4, 9, 2, 7}, LogitRows::kAll, all).has_value());
  f.kv->truncate(0);
  REQUIRE(f.forward({4, 9, 2, 7}, LogitRows::kLast, last).has_value());
  CHECK(std::equal(last.begin(), last.end(), all.end() - kVocab));
  f.kv->truncate(2);
  REQUIRE(f.forward({2}, LogitRows::kLast, last).has_value());
  CHECK(std::equal(last.begin(), last.end(), all.end() - 2 * kVocab));
}

TEST_CASE("taps show each step by name") {
  Fixture f;
  std::map<std::string, std::vector<float>> seen;
  f.executor->set_tap([&](const Tap& tap) {
    CHECK(tap.data.size() == size_t{tap.rows} * tap.width);
    seen[std::string(tap.name)].assign(tap.data.begin(), tap.data.end());
  });
  std::vector<float> logits;
  REQUIRE(f.forward({3, 8}, LogitRows::kLast, logits).has_value());
  CHECK(seen.size() == 5);
  CHECK(
      std::equal(seen["embed"].begin() + kWidth, seen["embed"].end(), f.weights.embed.begin() + 8 * kWidth));
  CHECK(seen["logits"] == logits);
  for (size_t i = 0; i < seen["sum"].size(); ++i) CHECK(seen["sum"][i] == seen["embed"][i] + seen["attn"][i]);
  f.executor->set_tap(nullptr);
  seen.clear();
  REQUIRE(f.forward({3}, LogitRows::kNone, logits).has_value());
  CHECK(seen.empty());
}

TEST_CASE("buffers are shared only by values that do not live together") {
  const graph::Graph g = small_graph();
  const cpu::BufferPlan plan = cpu::plan_buffers(g);
  CHECK(plan.slot_of[g.logits.value] == graph::kNone);
  CHECK(plan.slot_of[0] != plan.slot_of[1]);  // x lives on for the addition
  CHECK(plan.slot_of[0] != plan.slot_of[2]);
  CHECK(plan.slot_of[1] != plan.slot_of[2]);
  CHECK(plan.slot_width.size() == 3);  // y takes n's place, s one of x or a
}

}  // namespace
}  // namespace doppler::test
