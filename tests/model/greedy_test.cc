// Greedy continuations of the two real models on the CPU, against references computed in f32.
#include "model_files.h"
#include "runner.h"

namespace doppler::test {
namespace {

constexpr double kNearTie = 0.05;  // top-1 / top-2 margins below this may fall either way

// Steps that must agree: up to the first near tie.
size_t sure_steps(const nlohmann::json& reference) {
  size_t steps = 0;
  for (const auto& margin : reference["top1_top2_margin_per_step"]) {
    if (margin.is_number() && margin.get<double>() < kNearTie) break;  // null: not recorded
    ++steps;
  }
  return steps;
}

void check_against(const std::string& path, const std::string& file) {
  Runner runner(path, Precision::kExact);
  const nlohmann::json golden_file = golden_json(file);
  for (const auto& reference : golden_file["refs"]) {
    CAPTURE(reference["tag"].get<std::string>());
    const auto prompt = reference["prompt_ids"].get<std::vector<int32_t>>();
    const auto wanted = reference["out_ids"].get<std::vector<int32_t>>();
    std::vector<std::vector<float>> logits;
    const std::vector<int32_t> got = runner.greedy(prompt, wanted.size(), 512, &logits);
    for (size_t i = 0; i < std::min(sure_steps(reference), wanted.size()); ++i) {
      CAPTURE(i);
      REQUIRE(i < got.size());
      REQUIRE(got[i] == wanted[i]);
    }
    for (size_t step = 0; step < reference["top5_first3"].size() && step < sure_steps(reference) + 1;
         ++step) {
      const std::vector<double> logprobs = log_softmax(logits[step]);
      for (const auto& top : reference["top5_first3"][step]) {
        CAPTURE(top["id"].get<int>());
        CHECK(std::abs(logprobs[top["id"].get<size_t>()] - top["logprob"].get<double>()) < 0.02);
      }
    }
  }
}

TEST_CASE("gemma 3 270m continues as its f32 reference") { check_against(gemma(), "greedy-gemma-f32.json"); }
TEST_CASE("smollm2 135m continues as its f32 reference") {
  check_against(smollm2(), "greedy-smollm2-f32.json");
}

}  // namespace
}  // namespace doppler::test
