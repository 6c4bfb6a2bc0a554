// The same graph on the device and on the CPU.
#include "exec/gpu/gpu_executor.h"

#include <doctest/doctest.h>

#include <cmath>

#include "exec/gpu/plan.h"
#include "exec/gpu/tiny_graph.h"
#include "gpu/test_device.h"

namespace doppler {
namespace {

using testing::tiny_model;
using testing::TinyModel;
using testing::TinyShape;

std::shared_ptr<gpu::Device> shared_device() {
  static const std::shared_ptr<gpu::Device> device = gpu::open_test_device();
  return device;
}

std::unique_ptr<Executor> on_gpu(const TinyModel& model, GpuOptions options = {}, Progress progress = {}) {
  auto executor = make_gpu_executor(shared_device(), model.graph, *model.weights, options, progress);
  if (!executor) FAIL(executor.error().message);
  return std::move(*executor);
}

std::unique_ptr<Executor> on_cpu(const TinyModel& model, Precision precision) {
  auto executor = make_cpu_executor(model.graph, *model.weights, {.precision = precision, .threads = 1});
  if (!executor) FAIL(executor.error().message);
  return std::move(*executor);
}

std::vector<int32_t> some_ids(size_t count) {
  std::vector<int32_t> ids(count);
  for (size_t i = 0; i < count; ++i) ids[i] = static_cast<int32_t>((i * 7919 + 13) % 300);
  return ids;
}

/// Logits of every position when `ids` go through in chunks of `chunk`.
std::vector<float> all_logits(Executor& executor, std::span<const int32_t> ids, size_t chunk,
                              KvType type = KvType::kF32) {
  auto kv = executor.make_kv(static_cast<uint32_t>(ids.size()), type);
  REQUIRE(kv);
  std::vector<float> logits(ids.size() * 300);
  for (size_t at = 0; at < ids.size(); at += chunk) {
    const size_t count = std::min(chunk, ids.size() - at);
    auto ok = executor.forward(**kv, ids.subspan(at, count), LogitRows::kAll,
                               std::span(logits).subspan(at * 300, count * 300));
    if (!ok) FAIL(ok.error().message);
    CHECK((*kv)->length() == at + count);
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

}  // namespace

TEST_CASE("both families give the CPU's logits, exactly computed") {
  for (const bool gemma : {true, false}) {
    for (const DType second : {DType::kQ4_0, DType::kQ5_1, DType::kF32, DType::kBF16}) {
      CAPTURE(gemma);
      CAPTURE(dtype_name(second));
      const TinyModel model = tiny_model({.gemma = gemma, .second = second});
      const auto gpu = on_gpu(model, {.precision = Precision::kExact});
      const auto cpu = on_cpu(model, Precision::kExact);
      const auto ids = some_ids(37);
      const auto want = all_logits(*cpu, ids, 37);
      CHECK(nmse(all_logits(*gpu, ids, 37), want) < 1e-9);
      CHECK(nmse(all_logits(*gpu, ids, 37, KvType::kF16), all_logits(*cpu, ids, 37, KvType::kF16)) < 1e-6);
    }
  }
}

TEST_CASE("K-quants in a wider model") {
  const TinyShape shape{
      .layers = 2, .hidden = 256, .ffn = 512, .matrix = DType::kQ4_K, .second = DType::kQ6_K};
  const TinyModel model = tiny_model(shape);
  const auto ids = some_ids(9);
  const auto want = all_logits(*on_cpu(model, Precision::kExact), ids, 9);
  CHECK(nmse(all_logits(*on_gpu(model, {.precision = Precision::kExact}), ids, 9), want) < 1e-9);
}

TEST_CASE("fast precision stays near exact") {
  for (const bool gemma : {true, false}) {
    CAPTURE(gemma);
    const TinyModel model = tiny_model({.gemma = gemma});
    const auto ids = some_ids(20);
    const auto exact = all_logits(*on_cpu(model, Precision::kExact), ids, 20);
    const auto fast = all_logits(*on_gpu(model, {.precision = Precision::kFast}), ids, 20);
    const double error = nmse(fast, exact);
    CHECK(error < 1e-3);
    CHECK(error > 1e-9);  // it did take the int8 path
  }
}

TEST_CASE("chunks of any size give the same logits") {
  for (const Precision precision : {Precision::kExact, Precision::kFast}) {
    const TinyModel model = tiny_model({});
    const auto gpu = on_gpu(model, {.precision = precision});
    const auto ids = some_ids(70);
    const auto whole = all_logits(*gpu, ids, 70);
    for (const size_t chunk : {1u, 3u, 7u, 64u}) {
      CAPTURE(chunk);
      CHECK(nmse(all_logits(*gpu, ids, chunk), whole) < 1e-10);
    }
  }
}

TEST_CASE("a cache that grows past its first room keeps what it holds") {
  const TinyModel model = tiny_model({.layers = 1});
  const auto gpu = on_gpu(model, {.precision = Precision::kExact, .max_chunk = 300});
  const auto cpu = on_cpu(model, Precision::kExact);
  const auto ids = some_ids(700);
  CHECK(nmse(all_logits(*gpu, ids, 190), all_logits(*cpu, ids, 350)) < 1e-9);
}

TEST_CASE("tensors over the binding limit are split and give the same") {
  const TinyModel model = tiny_model({});
  const auto ids = some_ids(11);
  const GpuOptions whole{.precision = Precision::kExact, .max_chunk = 16};
  GpuOptions split = whole;
  split.max_binding_bytes = 4096;  // about 44 rows of 64 values in Q8_0
  const auto planned =
      gpu_exec::plan_static(model.graph, gpu_exec::planning_caps(shared_device()->caps(), split), split);
  REQUIRE(planned);
  CHECK(planned->parts[0].size() > 4);
  // Fewer logits fit at once too, so another kernel may compute them.
  CHECK(nmse(all_logits(*on_gpu(model, split), ids, 11), all_logits(*on_gpu(model, whole), ids, 11)) < 1e-10);
  split.max_binding_bytes = 64;
  const auto refused = make_gpu_executor(shared_device(), model.graph, *model.weights, split);
  REQUIRE_FALSE(refused);
  CHECK(refused.error().code == ErrorCode::kUnsupported);
}

TEST_CASE("logits of the last row, of none, and after a truncation") {
  const TinyModel model = tiny_model({});
  const auto gpu = on_gpu(model, {.precision = Precision::kExact});
  const auto ids = some_ids(12);
  const auto all = all_logits(*gpu, ids, 12);
  const std::span<const float> want = std::span(all).subspan(11 * 300);
  auto kv = *gpu->make_kv(64, KvType::kF32);
  REQUIRE(gpu->forward(*kv, std::span(ids).first(5), LogitRows::kNone, {}));
  CHECK(kv->length() == 5);
  std::vector<float> last(300);
  REQUIRE(gpu->forward(*kv, std::span(ids).subspan(5), LogitRows::kLast, last));
  CHECK(nmse(last, want) < 1e-10);
  kv->truncate(8);
  CHECK(kv->length() == 8);
  REQUIRE(gpu->forward(*kv, std::span(ids).subspan(8), LogitRows::kLast, last));
  CHECK(nmse(last, want) < 1e-10);
}

TEST_CASE("logits of more rows than fit at once come in parts") {
  const TinyModel model = tiny_model({.layers = 1});
  const auto ids = some_ids(40);
  // 19,200 bytes bind 16 rows of 300 logits.
  const auto gpu =
      on_gpu(model, {.precision = Precision::kExact, .max_chunk = 40, .max_binding_bytes = 19200});
  const auto whole = on_gpu(model, {.precision = Precision::kExact, .max_chunk = 40});
  CHECK(nmse(all_logits(*gpu, ids, 40), all_logits(*whole, ids, 40)) < 1e-10);
}

TEST_CASE("taps tell every step that the CPU tells") {
  const TinyModel model = tiny_model({});
  struct Step {
    std::string name;
    std::vector<float> data;
  };
  const auto steps_of = [&](Executor& executor) {
    std::vector<Step> steps;
    executor.set_tap([&](const Tap& tap) {
      steps.push_back({fmt::format("{}.{}[{}x{}]", tap.layer, tap.name, tap.rows, tap.width),
                       {tap.data.begin(), tap.data.end()}});
    });
    all_logits(executor, some_ids(6), 6);
    return steps;
  };
  const auto gpu = steps_of(*on_gpu(model, {.precision = Precision::kExact}));
  const auto cpu = steps_of(*on_cpu(model, Precision::kExact));
  REQUIRE(gpu.size() == cpu.size());
  for (size_t i = 0; i < gpu.size(); ++i) {
    CAPTURE(cpu[i].name);
    CHECK(gpu[i].name == cpu[i].name);
    CHECK(nmse(gpu[i].data, cpu[i].data) < 1e-9);
  }
}

TEST_CASE("wrong calls are errors and leave the cache as it was") {
  const TinyModel model = tiny_model({.layers = 1});
  const auto gpu = on_gpu(model, {.max_chunk = 8}), other = on_gpu(model, {.max_chunk = 8});
  auto kv = *gpu->make_kv(10, KvType::kF16);
  std::vector<float> logits(300);
  const auto code = [&](Executor& executor, std::vector<int32_t> ids, LogitRows rows, std::span<float> out) {
    const auto result = executor.forward(*kv, ids, rows, out);
    return result ? -1 : static_cast<int>(result.error().code);
  };
  const int bad = static_cast<int>(ErrorCode::kBadInput);
  CHECK(code(*gpu, {}, LogitRows::kLast, logits) == bad);
  CHECK(code(*gpu, std::vector<int32_t>(9), LogitRows::kLast, logits) == bad);
  CHECK(code(*gpu, {300}, LogitRows::kLast, logits) == bad);
  CHECK(code(*gpu, {-1}, LogitRows::kLast, logits) == bad);
  CHECK(code(*gpu, {1}, LogitRows::kAll, std::span(logits).first(299)) == bad);
  CHECK(code(*other, {1}, LogitRows::kLast, logits) == bad);  // another executor's cache
  CHECK(kv->length() == 0);
  CHECK(code(*gpu, std::vector<int32_t>(8), LogitRows::kNone, {}) == -1);
  CHECK(code(*gpu, std::vector<int32_t>(3), LogitRows::kNone, {}) == bad);  // 11 of 10
  CHECK(kv->length() == 8);
  CHECK_FALSE(gpu->make_kv(0, KvType::kF16));
  CHECK_FALSE(make_gpu_executor(shared_device(), model.graph, *model.weights, {.max_chunk = 0}));
}

TEST_CASE("loading tells its progress, releases the source's pages and can be stopped") {
  const TinyModel model = tiny_model({});
  uint64_t last = 0, total = 0;
  on_gpu(model, {}, [&](std::string_view, uint64_t done, uint64_t all) {
    CHECK(done >= last);
    last = done;
    total = all;
    return true;
  });
  CHECK(last == total);
  CHECK(model.weights->released >= static_cast<int>(model.graph.weights.size()));
  int calls = 0;
  const auto stopped = make_gpu_executor(shared_device(), model.graph, *model.weights, {},
                                         [&](std::string_view, uint64_t, uint64_t) { return ++calls < 5; });
  REQUIRE_FALSE(stopped);
  CHECK(stopped.error().code == ErrorCode::kCancelled);
}

TEST_CASE("a lost device fails the pass, keeps the cache's length, and a new device works") {
  const TinyModel model = tiny_model({.layers = 1});
  std::shared_ptr<gpu::Device> device = gpu::open_test_device();
  auto executor = make_gpu_executor(device, model.graph, *model.weights, {});
  REQUIRE(executor);
  auto kv = *(*executor)->make_kv(600, KvType::kF16);
  std::vector<float> logits(300);
  const auto ids = some_ids(4);
  REQUIRE((*executor)->forward(*kv, ids, LogitRows::kLast, logits));
  device->destroy_for_test();
  const auto lost = (*executor)->forward(*kv, ids, LogitRows::kLast, logits);
  REQUIRE_FALSE(lost);
  CHECK(lost.error().code == ErrorCode::kDeviceLost);
  CHECK(kv->length() == 4);
  std::vector<float> again(300);
  const auto fresh = make_gpu_executor(gpu::open_test_device(), model.graph, *model.weights, {});
  REQUIRE(fresh);
  auto kv2 = *(*fresh)->make_kv(600, KvType::kF16);
  REQUIRE((*fresh)->forward(*kv2, ids, LogitRows::kLast, again));
  CHECK(again == logits);
}

TEST_CASE("decoding takes no device memory") {
  const TinyModel model = tiny_model({.layers = 1});
  const auto gpu = on_gpu(model);
  auto kv = *gpu->make_kv(200, KvType::kF16);
  std::vector<float> logits(300);
  const auto step = [&] { REQUIRE(gpu->forward(*kv, some_ids(1), LogitRows::kLast, logits)); };
  step();
  const uint64_t before = shared_device()->allocated_bytes();
  for (int i = 0; i < 50; ++i) step();
  CHECK(shared_device()->allocated_bytes() == before);
}

}  // namespace doppler
