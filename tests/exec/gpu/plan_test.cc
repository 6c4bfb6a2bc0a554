// Plans are made and printed without a device.
#include "exec/gpu/plan.h"

#include <doctest/doctest.h>

#include <algorithm>

#include "exec/gpu/slots.h"
#include "exec/gpu/tiny_graph.h"

namespace doppler::gpu_exec {
namespace {

using testing::tiny_model;
using testing::TinyModel;

size_t count_of(const std::vector<Step>& steps, StepKind kind) {
  return static_cast<size_t>(
      std::count_if(steps.begin(), steps.end(), [&](const Step& s) { return s.kind == kind; }));
}

gpu::Caps some_caps() {
  gpu::Caps caps;
  caps.adapter = "a planned GPU";
  caps.hardware = true;
  caps.subgroups = true;
  caps.subgroup_size = 32;
  return caps;
}

}  // namespace

TEST_CASE("a plan names each dispatch, its shape and its reason") {
  const TinyModel model = tiny_model({});
  const GpuOptions options{.max_chunk = 64};
  const auto fixed = plan_static(model.graph, some_caps(), options);
  REQUIRE(fixed);
  const Plan plan = plan_graph(model.graph, *fixed, 1, 1, some_caps(), options, 100);
  CHECK(count_of(plan.body, StepKind::kAttention) == 3);
  CHECK(count_of(plan.head, StepKind::kSelectRows) == 1);
  const std::string text = plan_text(model.graph, plan);
  CHECK(text.find("linear/matvec/Q8_0/int8") != std::string::npos);
  CHECK(text.find("window 5") != std::string::npos);
  CHECK(text.find("101 keys") != std::string::npos);
  CHECK(text.find(fmt::format("{} dispatches", plan.body.size() + plan.head.size())) != std::string::npos);
}

TEST_CASE("residual adds join the norm that follows, across layers too") {
  const GpuOptions options{.max_chunk = 64};
  for (const bool gemma : {true, false}) {
    const TinyModel model = tiny_model({.gemma = gemma, .layers = 3});
    const auto fixed = plan_static(model.graph, some_caps(), options);
    REQUIRE(fixed);
    const Plan plan = plan_graph(model.graph, *fixed, 4, 0, some_caps(), options);
    CHECK(count_of(plan.body, StepKind::kAddRmsNorm) == 5);  // 3 before feed-forward, 2 before the next layer
    CHECK(plan.head.empty());                                // no logits asked for
    CHECK(count_of(plan.body, StepKind::kAdd) == 1);         // the last goes to the row selection
  }
}

TEST_CASE("activations are quantised once for all weights that read them") {
  const TinyModel model = tiny_model({.layers = 1});
  const GpuOptions fast{.max_chunk = 64}, exact{.precision = Precision::kExact, .max_chunk = 64};
  const auto fixed = plan_static(model.graph, some_caps(), fast);
  REQUIRE(fixed);
  const Plan plan = plan_graph(model.graph, *fixed, 4, 1, some_caps(), fast);
  // For qkv, gate_up and ffn_out by the norms and the gate before them, for attn_out by attention or on its
  // own.
  const auto writes_int8 = [](const std::vector<Step>& steps) {
    return std::count_if(steps.begin(), steps.end(),
                         [](const Step& s) { return s.quantizes || s.kind == StepKind::kQuantizeAct; });
  };
  CHECK(writes_int8(plan.body) == 4);
  CHECK(writes_int8(plan.head) == 1);
  for (const Step& step : plan.body)  // f16 weights read f32 activations
    if (step.kind == StepKind::kLinear)
      CHECK(step.int8 == (model.graph.weights[step.weight].dtype != DType::kF16));
  const Plan plain = plan_graph(model.graph, *fixed, 4, 1, some_caps(), exact);
  CHECK(count_of(plain.body, StepKind::kQuantizeAct) == 0);
}

TEST_CASE("no dispatch reads and writes one buffer, and no live value is overwritten") {
  for (const bool gemma : {true, false}) {
    const TinyModel model = tiny_model({.gemma = gemma});
    const GpuOptions options{.max_chunk = 64};
    const auto fixed = plan_static(model.graph, some_caps(), options);
    REQUIRE(fixed);
    const SlotPlan& slots = fixed->slots;
    const Plan plan = plan_graph(model.graph, *fixed, 64, fixed->logit_rows, some_caps(), options);
    std::vector<graph::ValueId> holder(slots.slot_bytes.size(), graph::kNone);  // which value each slot holds
    auto steps = plan.body;
    for (int head_runs = 0; head_runs < 2; ++head_runs)
      steps.insert(steps.end(), plan.head.begin(), plan.head.end());
    for (const Step& step : steps) {
      const graph::Node& node = model.graph.nodes[step.node];
      std::vector<graph::ValueId> outs;
      if (step.kind != StepKind::kQuantizeAct && node.out.value != graph::kNone)
        outs.push_back(node.out.value);
      if (step.norm_node != graph::kNone) outs.push_back(model.graph.nodes[step.norm_node].out.value);
      // A norm before the add leaves no value of its own: what it reads is read here.
      const bool norms = step.kind == StepKind::kAddRmsNorm && step.first_node != graph::kNone;
      const graph::View added = norms ? model.graph.nodes[step.first_node].in : node.in2;
      for (const graph::View& in : {node.in, added}) {
        if (in.value == graph::kNone) continue;
        CHECK(holder[slots.slot_of[in.value]] == in.value);
        for (graph::ValueId out : outs)
          if (out != in.value) CHECK(slots.slot_of[out] != slots.slot_of[in.value]);
      }
      for (graph::ValueId out : outs) {
        holder[slots.slot_of[out]] = out;
        const graph::Value& value = model.graph.values[out];
        CHECK(slots.slot_bytes[slots.slot_of[out]] >=
              uint64_t{value.width} * 4 * (value.selected ? fixed->logit_rows : 64));
      }
    }
    CHECK(slots.slot_bytes.size() <= 8);
  }
}

}  // namespace doppler::gpu_exec
