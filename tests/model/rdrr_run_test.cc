// Tiny models in RDRR directories that the original converters wrote, both generations.
#include "model_files.h"
#include "runner.h"

namespace doppler::test {
namespace {

std::vector<float> all_logits(Runner& runner, std::span<const int32_t> ids) {
  runner.restart();
  std::vector<float> logits(ids.size() * runner.vocab());
  const auto done = runner.executor().forward(runner.kv(), ids, LogitRows::kAll, logits);
  REQUIRE_MESSAGE(done.has_value(), (done ? "" : done.error().message));
  return logits;
}

double largest_difference(const std::vector<float>& got, const nlohmann::json& wanted) {
  double largest = 0;
  size_t i = 0;
  for (const auto& row : wanted)
    for (const double x : row) largest = std::max(largest, std::abs(got.at(i++) - x));
  REQUIRE(i == got.size());
  return largest;
}

TEST_CASE("rdrr gemma 3 gives the reference's greedy ids") {
  const nlohmann::json reference = golden_json("tiny/gemma3.json");
  const auto prompt = reference["prompt_ids"].get<std::vector<int32_t>>();
  const auto wanted = reference["greedy_ids"].get<std::vector<int32_t>>();
  for (const char* name : {"gemma3-f16", "gemma3-early"}) {
    CAPTURE(name);
    Runner runner(golden("rdrr-original/" + std::string(name)), Precision::kExact, KvType::kF32, 256);
    CHECK(largest_difference(all_logits(runner, prompt), reference["logits"]) < 2e-3);
    const auto got = runner.greedy(prompt, wanted.size());
    CHECK(std::equal(got.begin(), got.end(), wanted.begin()));
  }
}

TEST_CASE("rdrr llama differs from the reference by its narrowing to f16") {
  const nlohmann::json reference = golden_json("tiny/llama.json");
  const auto prompt = reference["prompt_ids"].get<std::vector<int32_t>>();
  Runner runner(golden("rdrr-original/llama-f16"), Precision::kExact, KvType::kF32, 256);
  CHECK(largest_difference(all_logits(runner, prompt), reference["logits"]) < 0.02);
}

TEST_CASE("rdrr mixtral of the early converter gives the reference's greedy ids") {
  std::ifstream file(std::string(DOPPLER_TINY_DIR) + "/seed-9/mixtral/expected.json");
  const nlohmann::json reference = nlohmann::json::parse(file);
  const auto prompt = reference["prompt_ids"].get<std::vector<int32_t>>();
  const auto wanted = reference["greedy_ids"].get<std::vector<int32_t>>();
  Runner runner(golden("rdrr-original/mixtral-early"), Precision::kExact, KvType::kF32, 256);
  CHECK(largest_difference(all_logits(runner, prompt), reference["logits"]) < 4e-3);
  const auto got = runner.greedy(prompt, wanted.size());
  CHECK(std::equal(got.begin(), got.end(), wanted.begin()));
}

}  // namespace
}  // namespace doppler::test
