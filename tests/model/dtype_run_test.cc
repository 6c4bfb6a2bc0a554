// Every type that weights may have runs, and gives what the same values give as F32.
#include "base/quants.h"
#include "model/binding.h"
#include "model_files.h"
#include "runner.h"
#include "support/files.h"
#include "support/tiny_llama.h"

namespace doppler::test {
namespace {

// The same weights as F32, expanded by the plain reference.
class ExpandedWeights final : public graph::WeightSource {
 public:
  ExpandedWeights(const graph::WeightSource& packed, const graph::Graph& graph)
      : packed_(packed), graph_(graph) {}
  Result<graph::WeightData> load(const graph::Weight& weight) const override {
    for (const graph::Weight& original : graph_.weights) {
      if (original.name != weight.name) continue;
      const graph::WeightData data = take(packed_.load(original));
      const uint32_t block = dtype_info(original.dtype).block_elems;
      const size_t padded = (original.columns + block - 1) / block * block;
      auto values = std::make_shared<std::vector<float>>(size_t{original.rows} * original.columns);
      std::vector<float> row(padded);
      for (size_t r = 0; r < original.rows; ++r) {
        dequantize(original.dtype, data.bytes.data() + r * data.row_bytes, padded, row.data());
        std::copy_n(row.begin(), original.columns,
                    values->begin() + static_cast<ptrdiff_t>(r * original.columns));
      }
      return graph::WeightData{std::as_bytes(std::span<const float>(*values)),
                               original.columns * sizeof(float), values};
    }
    return fail(ErrorCode::kNotFound, "no weight {}", weight.name);
  }
  void release(const graph::Weight&) const override {}

 private:
  const graph::WeightSource& packed_;
  const graph::Graph& graph_;
};

std::vector<float> logits_of(graph::Graph graph, const graph::WeightSource& weights, Precision precision) {
  const uint32_t vocab = graph.logits.width;
  auto executor = take(make_cpu_executor(std::move(graph), weights, {precision, 2, 64}));
  auto kv = take(executor->make_kv(64, KvType::kF32));
  const std::vector<int32_t> ids{5, 17, 2, 90, 33, 4, 250, 8, 8, 1, 77};
  std::vector<float> logits(ids.size() * vocab);
  const auto done = executor->forward(*kv, ids, LogitRows::kAll, logits);
  REQUIRE_MESSAGE(done.has_value(), (done ? "" : done.error().message));
  return logits;
}

double nmse(const std::vector<float>& got, const std::vector<float>& wanted) {
  double error = 0, power = 0;
  for (size_t i = 0; i < got.size(); ++i) {
    error += (static_cast<double>(got[i]) - wanted[i]) * (static_cast<double>(got[i]) - wanted[i]);
    power += static_cast<double>(wanted[i]) * wanted[i];
  }
  return error / power;
}

void check_packed(const std::string& path) {
  const auto m = take(model::open_model(path));
  graph::Graph expanded = m.graph;
  for (graph::Weight& weight : expanded.weights) weight.dtype = DType::kF32;
  const ExpandedWeights weights(*m.weights, m.graph);
  const auto wanted = logits_of(expanded, weights, Precision::kExact);
  CHECK(nmse(logits_of(m.graph, *m.weights, Precision::kExact), wanted) < 1e-10);
  CHECK(nmse(logits_of(m.graph, *m.weights, Precision::kFast), wanted) < 2e-3);
}

TEST_CASE("packed weights run as their f32 values") {
  const TempDir folder;
  for (const DType dtype : {DType::kF32, DType::kF16, DType::kBF16, DType::kQ4_0, DType::kQ4_1, DType::kQ5_0,
                            DType::kQ5_1, DType::kQ8_0, DType::kQ4_K, DType::kQ5_K, DType::kQ6_K}) {
    CAPTURE(dtype_name(dtype));
    REQUIRE(can_quantize(dtype));
    tiny_llama_gguf(folder.file("m.gguf"), {.dtype = dtype});
    check_packed(folder.file("m.gguf"));
  }
}

TEST_CASE("rows padded to whole blocks run as their f32 values") {
  check_packed(golden("rdrr-original/gemma3-q4k"));
}

TEST_CASE("sizes that divide by nothing run") {
  const TempDir folder;
  tiny_llama_gguf(folder.file("m.gguf"),
                  {.dtype = DType::kF16, .layers = 1, .hidden = 42, .ffn = 37, .heads = 3, .kv_heads = 1});
  check_packed(folder.file("m.gguf"));
}

}  // namespace
}  // namespace doppler::test
