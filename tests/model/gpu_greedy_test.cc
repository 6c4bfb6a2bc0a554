// The real models on lavapipe: greedy references, chunks, memory.
#include "greedy_check.h"

namespace doppler::test {
namespace {

std::shared_ptr<gpu::Device> lavapipe() {
  return take(gpu::Device::create({.name = "lavapipe", .checked_shaders = false}));
}

}  // namespace

TEST_CASE("gemma 3 270m on lavapipe continues as its f32 reference") {
  Runner runner(gemma(), Precision::kExact, KvType::kF32, 2048, lavapipe());
  check_against(runner, "greedy-gemma-f32.json");
}

TEST_CASE("smollm2 135m on lavapipe continues as its f32 reference") {
  Runner runner(smollm2(), Precision::kExact, KvType::kF32, 2048, lavapipe());
  check_against(runner, "greedy-smollm2-f32.json");
}

TEST_CASE("a prompt beyond gemma's window gives the same ids on lavapipe whatever the chunk") {
  Runner runner(gemma(), Precision::kExact, KvType::kF32, 2048, lavapipe());
  const nlohmann::json file = golden_json("greedy-gemma-f32.json");
  for (const auto& reference : file["refs"]) {
    const auto prompt = reference["prompt_ids"].get<std::vector<int32_t>>();
    if (prompt.size() < 600) continue;
    const auto whole = runner.greedy(prompt, 4, 512);
    for (const size_t chunk : {7u, 64u}) {
      CAPTURE(chunk);
      CHECK(runner.greedy(prompt, 4, chunk) == whole);
    }
    return;
  }
  FAIL("no long prompt among the references");
}

}  // namespace doppler::test
