// The tiny families on lavapipe: against transformers' numbers, and with packed weights against the CPU.
#include "base/quants.h"
#include "families_check.h"

namespace doppler::test {
namespace {

std::shared_ptr<gpu::Device> lavapipe() {
  static const std::shared_ptr<gpu::Device> device = take(gpu::Device::create({.name = "lavapipe"}));
  return device;
}

bool dense(const fs::path& folder) { return take(model::open_model(folder.string())).config.experts == 0; }

void check_seed(const std::string& seed, size_t at_least) {
  size_t count = 0;
  for (const fs::path& folder : families_of(seed)) {
    if (!dense(folder)) continue;
    check_family(folder, lavapipe());
    ++count;
  }
  CHECK(count >= at_least);
}

TEST_CASE("lavapipe: the dense tiny families give transformers' logits, hidden states and greedy ids") {
  check_seed("seed-9", 12);
}

TEST_CASE("lavapipe: tiny families of other dimensions do too") { check_seed("seed-25", 6); }

// A model's matrices as Q8_0, whatever they are in the file; vectors stay.
class PackedWeights final : public graph::WeightSource {
 public:
  PackedWeights(const graph::WeightSource& source, const graph::Graph& graph)
      : source_(source), graph_(graph) {}
  Result<graph::WeightData> load(const graph::Weight& weight) const override {
    for (const graph::Weight& original : graph_.weights) {
      if (original.name != weight.name) continue;
      graph::WeightData data = take(source_.load(original));
      if (original.dtype == weight.dtype) return data;
      const uint64_t row = row_bytes(weight.dtype, weight.columns);
      const size_t padded = (weight.columns + 31u) / 32 * 32;
      auto bytes = std::make_shared<std::vector<std::byte>>(row * weight.rows);
      std::vector<float> values(padded);
      for (size_t r = 0; r < weight.rows; ++r) {
        dequantize(original.dtype, data.bytes.data() + r * data.row_bytes, weight.columns, values.data());
        quantize(weight.dtype, values.data(), padded, bytes->data() + r * row);
      }
      return graph::WeightData{*bytes, row, bytes};
    }
    return fail(ErrorCode::kNotFound, "no weight {}", weight.name);
  }
  void release(const graph::Weight&) const override {}

 private:
  const graph::WeightSource& source_;
  const graph::Graph& graph_;
};

std::vector<float> all_logits(Executor& executor, std::span<const int32_t> ids, uint32_t vocab) {
  auto kv = take(executor.make_kv(256, KvType::kF32));
  std::vector<float> logits(ids.size() * vocab);
  const auto done = executor.forward(*kv, ids, LogitRows::kAll, logits);
  REQUIRE_MESSAGE(done.has_value(), (done ? "" : done.error().message));
  return logits;
}

double nmse(const std::vector<float>& got, const std::vector<float>& wanted) {
  double error = 0, power = 0;
  for (size_t i = 0; i < got.size(); ++i) {
    error += (double{got[i]} - wanted[i]) * (double{got[i]} - wanted[i]);
    power += double{wanted[i]} * wanted[i];
  }
  return error / power;
}

TEST_CASE("lavapipe: the dense tiny families with packed weights, exact and fast") {
  for (const fs::path& folder : families_of("seed-9")) {
    if (!dense(folder)) continue;
    CAPTURE(folder.string());
    const model::LoadedModel model = take(model::open_model(folder.string()));
    graph::Graph graph = model.graph;
    for (graph::Weight& weight : graph.weights)
      if (weight.rows > 1) weight.dtype = DType::kQ8_0;
    const PackedWeights weights(*model.weights, model.graph);
    const auto ids = expected_of(folder)["prompt_ids"].get<std::vector<int32_t>>();
    const auto on_gpu = [&](Precision precision) {
      const GpuOptions options{.precision = precision, .max_chunk = 64};
      return all_logits(*take(make_gpu_executor(lavapipe(), graph, weights, options)), ids,
                        graph.logits.width);
    };
    const auto cpu = take(make_cpu_executor(graph, weights, {Precision::kExact, 0, 64}));
    const std::vector<float> wanted = all_logits(*cpu, ids, graph.logits.width);
    CHECK(nmse(on_gpu(Precision::kExact), wanted) < 1e-8);
    const double fast = nmse(on_gpu(Precision::kFast), wanted);
    CHECK(fast < 2e-3);
    CHECK(fast > 1e-8);  // it did take the int8 path
  }
}

}  // namespace
}  // namespace doppler::test
