// Mixtures of experts on the device: against the CPU, in parts, and on demand.
#include <doctest/doctest.h>

#include <cmath>
#include <set>

#include "exec/gpu/gpu_executor.h"
#include "exec/gpu/plan.h"
#include "exec/gpu/tiny_experts.h"
#include "gpu/test_device.h"

namespace doppler {
namespace {

using testing::expert_model;
using testing::ExpertModel;
using testing::ExpertShape;

std::shared_ptr<gpu::Device> shared_device() {
  static const std::shared_ptr<gpu::Device> device = gpu::open_test_device();
  return device;
}

template <class T>
T take(Result<T> result) {
  if (!result) FAIL(result.error().message);
  return std::move(*result);
}

std::unique_ptr<Executor> on_gpu(const ExpertModel& model, GpuOptions options) {
  return take(make_gpu_executor(shared_device(), model.graph, *model.weights, options));
}

std::unique_ptr<Executor> on_cpu(const ExpertModel& model) {
  return take(make_cpu_executor(model.graph, *model.weights, {Precision::kExact, 2, 512}));
}

std::vector<int32_t> some_ids(size_t count, uint32_t vocab) {
  std::vector<int32_t> ids(count);
  for (size_t i = 0; i < count; ++i) ids[i] = static_cast<int32_t>((i * 37 + 11) % vocab);
  return ids;
}

std::vector<float> all_logits(Executor& executor, const ExpertModel& model, std::span<const int32_t> ids,
                              size_t chunk) {
  const uint32_t vocab = model.graph.logits.width;
  const auto kv = take(executor.make_kv(4096, KvType::kF32));
  std::vector<float> logits(ids.size() * vocab);
  for (size_t at = 0; at < ids.size(); at += chunk) {
    const size_t count = std::min(chunk, ids.size() - at);
    const auto done = executor.forward(*kv, ids.subspan(at, count), LogitRows::kAll,
                                       std::span(logits).subspan(at * vocab, count * vocab));
    if (!done) FAIL(done.error().message);
  }
  return logits;
}

double nmse(std::span<const float> got, std::span<const float> want) {
  double error = 0, power = 0;
  for (size_t i = 0; i < got.size(); ++i) {
    error += (double{got[i]} - want[i]) * (double{got[i]} - want[i]);
    power += double{want[i]} * want[i];
  }
  return error / power;
}

uint64_t all_expert_bytes(const ExpertModel& model, uint64_t* slot = nullptr) {
  const GpuOptions options{.max_chunk = 1};
  const auto fixed = take(gpu_exec::plan_static(model.graph, shared_device()->caps(), options));
  uint64_t bytes = 0;
  for (const auto& pool : fixed.expert_pools) bytes += pool.experts * pool.slot_bytes;
  if (slot != nullptr) *slot = fixed.expert_pools[0].slot_bytes;
  return bytes;
}

TEST_CASE("any number of experts gives the CPU's logits, exactly computed") {
  for (const uint32_t experts : {1u, 3u, 5u, 9u, 33u})
    for (const uint32_t top_k : {1u, 2u, 4u}) {
      if (top_k > experts) continue;
      const bool bias = (experts + top_k) % 4 == 3;
      CAPTURE(experts);
      CAPTURE(top_k);
      CAPTURE(bias);
      const ExpertModel model = expert_model(
          {.experts = experts,
           .top_k = top_k,
           .layers = 2,
           .down = bias ? DType::kF16 : DType::kQ5_1,
           .bias = bias,
           .routing = bias ? graph::Routing::kSoftmaxOverAll : graph::Routing::kSoftmaxOfChosen});
      const auto gpu = on_gpu(model, {.precision = Precision::kExact, .max_chunk = 64});
      const auto ids = some_ids(50, 100);
      const auto want = all_logits(*on_cpu(model), model, ids, 50);
      for (const size_t chunk : {50u, 7u, 1u}) {
        CAPTURE(chunk);
        CHECK(nmse(all_logits(*gpu, model, ids, chunk), want) < 1e-9);
      }
    }
}

TEST_CASE("widths that are no multiple of anything") {
  const ExpertModel model =
      expert_model({.experts = 5, .hidden = 37, .ffn = 45, .gate = DType::kF32, .up = DType::kBF16});
  const auto ids = some_ids(23, 100);
  const auto want = all_logits(*on_cpu(model), model, ids, 23);
  const auto gpu = on_gpu(model, {.precision = Precision::kExact, .max_chunk = 32});
  CHECK(nmse(all_logits(*gpu, model, ids, 23), want) < 1e-9);
  CHECK(nmse(all_logits(*gpu, model, ids, 2), want) < 1e-9);
}

TEST_CASE("fast precision stays near exact") {
  const ExpertModel model = expert_model({.layers = 2});
  const auto ids = some_ids(20, 100);
  const auto exact = all_logits(*on_gpu(model, {.precision = Precision::kExact}), model, ids, 20);
  // A router's logits may turn a choice of experts; most rows choose alike.
  const double error = nmse(all_logits(*on_gpu(model, {}), model, ids, 20), exact);
  CHECK(error < 0.05);
  CHECK(error > 1e-9);  // it did take the int8 path
}

TEST_CASE("stacks over the binding limit are split by experts and give the same bits") {
  const ExpertModel model = expert_model({.experts = 7, .bias = true});
  const auto ids = some_ids(30, 100);
  GpuOptions options{.max_chunk = 32};
  const auto want = all_logits(*on_gpu(model, options), model, ids, 30);
  options.max_binding_bytes = 30000;  // three to five experts of 96 x 64 in Q8_0
  const auto fixed = take(
      gpu_exec::plan_static(model.graph, gpu_exec::planning_caps(shared_device()->caps(), options), options));
  CHECK(fixed.expert_pools[0].matrices[0].parts.size() > 1);
  const auto split = on_gpu(model, options);
  CHECK(all_logits(*split, model, ids, 30) == want);
  options.max_binding_bytes = 4096;
  const auto refused = make_gpu_executor(shared_device(), model.graph, *model.weights, options);
  REQUIRE_FALSE(refused);
  CHECK(refused.error().code == ErrorCode::kUnsupported);
}

/// The different experts that each layer's routes name, summed over passes.
struct Asked {
  uint64_t count = 0;
  void listen(Executor& executor) {
    executor.set_tap([this](const Tap& tap) {
      if (tap.name != "routes") return;
      std::set<float> experts;
      for (uint32_t r = 0; r < tap.rows; ++r)
        for (uint32_t s = 0; s < tap.width / 2; ++s) experts.insert(tap.data[r * tap.width + s]);
      count += experts.size();
    });
  }
};

TEST_CASE("experts on demand: all, half, a token's: the same bits, and the counters add up") {
  for (const Precision precision : {Precision::kExact, Precision::kFast}) {
    // The last layer is stored differently: it has a pool of its own.
    const ExpertModel model =
        expert_model({.experts = 9, .top_k = 3, .last_down = DType::kQ6_K, .bias = true});
    const auto ids = some_ids(60, 100);
    const auto resident = on_gpu(model, {.precision = precision, .max_chunk = 64});
    CHECK_FALSE(resident->expert_stats());
    const uint64_t all = all_expert_bytes(model);
    const auto fixed = take(gpu_exec::plan_static(model.graph, shared_device()->caps(),
                                                  {.max_chunk = 64, .expert_memory_bytes = all}));
    REQUIRE(fixed.expert_pools.size() == 2);
    uint64_t least = 0;
    for (const auto& pool : fixed.expert_pools) least += 3 * pool.slot_bytes;
    for (const size_t chunk : {60u, 1u}) {
      Asked asked;
      asked.listen(*resident);
      all_logits(*resident, model, ids, chunk);
      resident->set_tap(nullptr);
      const auto want = all_logits(*resident, model, ids, chunk);
      for (const uint64_t memory : {all, all / 2, least}) {
        CAPTURE(chunk);
        CAPTURE(memory);
        const auto gpu =
            on_gpu(model, {.precision = precision, .max_chunk = 64, .expert_memory_bytes = memory});
        const ExpertStats before = *gpu->expert_stats();
        CHECK(before.hits + before.misses == 0);
        CHECK(before.slots_wanted == 27);
        CHECK(before.slot_bytes <= memory);
        CHECK(all_logits(*gpu, model, ids, chunk) == want);
        const ExpertStats stats = *gpu->expert_stats();
        CHECK(stats.hits + stats.misses == asked.count);
        CHECK(stats.prefetched <= stats.misses);
        CHECK(stats.bytes_loaded > 0);
        if (memory == all) {
          CHECK(stats.slots == 27);
          CHECK(stats.misses <= 27);
          CHECK(all_logits(*gpu, model, ids, chunk) == want);
          const ExpertStats again = *gpu->expert_stats();
          CHECK(again.misses == stats.misses);
          CHECK(again.hits == stats.hits + asked.count);
          CHECK(again.bytes_loaded == stats.bytes_loaded);
        } else if (chunk == 1) {
          CHECK(stats.misses > 27);
        }
        if (memory == least) CHECK(stats.slots == 6);
      }
    }
  }
}

TEST_CASE("experts on demand: taps tell what they tell of a resident model, in waves too") {
  const ExpertModel model = expert_model({.experts = 7, .bias = true});
  const auto ids = some_ids(40, 100);
  uint64_t slot = 0;
  all_expert_bytes(model, &slot);
  const auto taps_of = [&](const GpuOptions& options) {
    std::vector<std::pair<std::string, std::vector<float>>> taps;
    const auto gpu = on_gpu(model, options);
    gpu->set_tap([&](const Tap& tap) {
      taps.emplace_back(fmt::format("{}.{}", tap.layer, tap.name),
                        std::vector<float>(tap.data.begin(), tap.data.end()));
    });
    all_logits(*gpu, model, ids, 40);
    return taps;
  };
  const auto want = taps_of({.max_chunk = 40});
  const auto got = taps_of({.max_chunk = 40, .expert_memory_bytes = 2 * slot});
  REQUIRE(got.size() == want.size());
  for (size_t i = 0; i < got.size(); ++i) {
    CAPTURE(want[i].first);
    CHECK(got[i].first == want[i].first);
    CHECK(got[i].second == want[i].second);
  }
}

TEST_CASE("experts on demand: too little memory is refused with the numbers") {
  const ExpertModel model = expert_model({.experts = 8, .top_k = 3});
  uint64_t slot = 0;
  all_expert_bytes(model, &slot);
  const auto refused =
      make_gpu_executor(shared_device(), model.graph, *model.weights, {.expert_memory_bytes = 3 * slot - 1});
  REQUIRE_FALSE(refused);
  CHECK(refused.error().code == ErrorCode::kBadInput);
  CHECK(refused.error().message.find(std::to_string(3 * slot)) != std::string::npos);
  CHECK(refused.error().message.find(std::to_string(3 * slot - 1)) != std::string::npos);
}

TEST_CASE("experts on demand: one that cannot be read fails the pass and no later one") {
  const ExpertModel model = expert_model({.experts = 6});
  uint64_t slot = 0;
  all_expert_bytes(model, &slot);
  const auto gpu = on_gpu(model, {.max_chunk = 64, .expert_memory_bytes = 3 * slot});
  const auto ids = some_ids(30, 100);
  const auto want = all_logits(*on_gpu(model, {.max_chunk = 64}), model, ids, 30);
  model.weights->failing_expert = 4;
  const auto kv = take(gpu->make_kv(100, KvType::kF32));
  std::vector<float> logits(30 * 100);
  const auto failed = gpu->forward(*kv, ids, LogitRows::kAll, logits);
  REQUIRE_FALSE(failed);
  CHECK(failed.error().code == ErrorCode::kIo);
  CHECK(kv->length() == 0);
  model.weights->failing_expert = -1;
  CHECK(all_logits(*gpu, model, ids, 30) == want);
}

TEST_CASE("experts on demand: a lost device fails the pass") {
  const ExpertModel model = expert_model({.layers = 1});
  uint64_t slot = 0;
  all_expert_bytes(model, &slot);
  std::shared_ptr<gpu::Device> device = gpu::open_test_device();
  auto gpu = take(make_gpu_executor(device, model.graph, *model.weights, {.expert_memory_bytes = 4 * slot}));
  const auto kv = take(gpu->make_kv(64, KvType::kF16));
  std::vector<float> logits(100);
  REQUIRE(gpu->forward(*kv, some_ids(4, 100), LogitRows::kLast, logits));
  device->destroy_for_test();
  const auto lost = gpu->forward(*kv, some_ids(4, 100), LogitRows::kLast, logits);
  REQUIRE_FALSE(lost);
  CHECK(lost.error().code == ErrorCode::kDeviceLost);
  CHECK(kv->length() == 4);
}

TEST_CASE("loading all experts tells its progress and can be stopped") {
  const ExpertModel model = expert_model({});
  uint64_t last = 0, total = 0, calls = 0;
  const auto tell = [&](std::string_view, uint64_t done, uint64_t all) {
    CHECK(done >= last);
    last = done;
    total = all;
    ++calls;
    return true;
  };
  REQUIRE(make_gpu_executor(shared_device(), model.graph, *model.weights, {}, tell));
  CHECK(last == total);
  CHECK(calls > 24);
  uint64_t left = calls - 3;
  const auto stopped = make_gpu_executor(shared_device(), model.graph, *model.weights, {},
                                         [&](std::string_view, uint64_t, uint64_t) { return --left > 0; });
  REQUIRE_FALSE(stopped);
  CHECK(stopped.error().code == ErrorCode::kCancelled);
}

TEST_CASE("more experts than the kernels take are refused by number") {
  const ExpertModel model = expert_model({.experts = 513, .top_k = 1, .layers = 1, .hidden = 32, .ffn = 32});
  const auto refused = make_gpu_executor(shared_device(), model.graph, *model.weights, {});
  REQUIRE_FALSE(refused);
  CHECK(refused.error().code == ErrorCode::kUnsupported);
  CHECK(refused.error().message.find("513") != std::string::npos);
}

TEST_CASE("a decode step has a fixed number of dispatches, whatever the experts") {
  const ExpertModel model = expert_model({.experts = 33, .top_k = 4});
  const GpuOptions options{.max_chunk = 64};
  const gpu::Caps caps = shared_device()->caps();
  const auto fixed = take(gpu_exec::plan_static(model.graph, caps, options));
  const auto decode = gpu_exec::plan_graph(model.graph, fixed, 1, 1, caps, options);
  size_t of_experts = 0;
  for (const gpu_exec::Step& step : decode.body) {
    CHECK(step.kind != gpu_exec::StepKind::kExpertGroup);
    of_experts += step.kind == gpu_exec::StepKind::kExpertLinear;
  }
  CHECK(of_experts == 3 * 3);
}

}  // namespace
}  // namespace doppler
