#pragma once
// Greedy continuations of the real models against references computed in f32.
#include "model_files.h"
#include "runner.h"

namespace doppler::test {

inline constexpr double kNearTie = 0.05;  // top-1 / top-2 margins below this may fall either way

// Steps that must agree: up to the first near tie.
inline size_t sure_steps(const nlohmann::json& reference) {
  size_t steps = 0;
  for (const auto& margin : reference["top1_top2_margin_per_step"]) {
    if (margin.is_number() && margin.get<double>() < kNearTie) break;  // null: not recorded
    ++steps;
  }
  return steps;
}

/// Every reference of a golden file: ids up to the first near tie, the end id included, and the top-5 log
/// probabilities of the first three steps.
inline void check_against(Runner& runner, const std::string& file) {
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

}  // namespace doppler::test
