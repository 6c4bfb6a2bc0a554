// The prompt longer than Gemma's window gives the same tokens whatever the chunk it is fed in.
#include "model_files.h"
#include "runner.h"

namespace doppler::test {
namespace {

void check_chunks(const std::string& path, const std::string& file, Precision precision, KvType kv_type) {
  Runner runner(path, precision, kv_type);
  const nlohmann::json golden_file = golden_json(file);
  for (const auto& reference : golden_file["refs"]) {
    if (reference["tag"] != "over-512") continue;
    const auto prompt = reference["prompt_ids"].get<std::vector<int32_t>>();
    constexpr size_t kSteps = 8;
    std::vector<std::vector<float>> first;
    const std::vector<int32_t> wanted = runner.greedy(prompt, kSteps, 512, &first);
    for (const size_t chunk : {1, 7, 64}) {
      CAPTURE(chunk);
      std::vector<std::vector<float>> logits;
      CHECK(runner.greedy(prompt, kSteps, chunk, &logits) == wanted);
      CHECK(logits[0] == first[0]);  // every sum is taken in the same order: equal to the last bit
    }
  }
}

TEST_CASE("gemma 3 does not depend on the chunk") {
  check_chunks(gemma(), "greedy-gemma-f32.json", Precision::kExact, KvType::kF32);
  check_chunks(gemma(), "greedy-gemma-f32.json", Precision::kFast, KvType::kF16);
}

TEST_CASE("smollm2 does not depend on the chunk") {
  check_chunks(smollm2(), "greedy-smollm2-f32.json", Precision::kExact, KvType::kF32);
}

}  // namespace
}  // namespace doppler::test
