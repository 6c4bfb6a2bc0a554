// Fast precision (int8 activations) and the f16 cache against exact, on the references' long prompts.
#include "model_files.h"
#include "runner.h"

namespace doppler::test {
namespace {

struct Drift {
  double kl = 0, nll_exact = 0, nll_other = 0;  // sums over predictions
  size_t count = 0;
};

std::vector<float> all_logits(Runner& runner, std::span<const int32_t> ids) {
  runner.restart();
  std::vector<float> logits(ids.size() * runner.vocab());
  const auto done = runner.executor().forward(runner.kv(), ids, LogitRows::kAll, logits);
  REQUIRE_MESSAGE(done.has_value(), (done ? "" : done.error().message));
  return logits;
}

// Predictions of the second half of the first `length` tokens of a reference's prompt.
void add_drift(Runner& exact, Runner& other, std::span<const int32_t> ids, Drift& drift) {
  const std::vector<float> a = all_logits(exact, ids), b = all_logits(other, ids);
  const size_t vocab = exact.vocab();
  for (size_t i = ids.size() / 2; i + 1 < ids.size(); ++i) {
    const auto p = log_softmax(std::span(a).subspan(i * vocab, vocab));
    const auto q = log_softmax(std::span(b).subspan(i * vocab, vocab));
    for (size_t k = 0; k < vocab; ++k) drift.kl += std::exp(p[k]) * (p[k] - q[k]);
    drift.nll_exact -= p[static_cast<size_t>(ids[i + 1])];
    drift.nll_other -= q[static_cast<size_t>(ids[i + 1])];
    ++drift.count;
  }
}

void check_drift(const std::string& path, const std::string& file, Precision precision, KvType kv_type,
                 double most_kl, double most_perplexity) {
  Runner exact(path, Precision::kExact), other(path, precision, kv_type);
  Drift drift;
  const nlohmann::json golden_file = golden_json(file);
  for (const auto& reference : golden_file["refs"]) {
    auto ids = reference["prompt_ids"].get<std::vector<int32_t>>();
    if (ids.size() < 300) continue;
    ids.resize(256);
    add_drift(exact, other, ids, drift);
  }
  const double n = static_cast<double>(drift.count);
  const double kl = drift.kl / n, perplexity = std::exp((drift.nll_other - drift.nll_exact) / n);
  CAPTURE(kl);
  CAPTURE(perplexity);
  CHECK(kl >= 0);
  CHECK(kl < most_kl);
  CHECK(std::abs(perplexity - 1) < most_perplexity);
}

TEST_CASE("int8 activations stay near exact") {
  check_drift(gemma(), "greedy-gemma-f32.json", Precision::kFast, KvType::kF32, 0.02, 0.02);
  check_drift(smollm2(), "greedy-smollm2-f32.json", Precision::kFast, KvType::kF32, 0.02, 0.02);
}

TEST_CASE("an f16 cache stays near f32") {
  check_drift(gemma(), "greedy-gemma-f32.json", Precision::kExact, KvType::kF16, 1e-5, 1e-3);
  check_drift(smollm2(), "greedy-smollm2-f32.json", Precision::kExact, KvType::kF16, 1e-5, 1e-3);
}

// Ids may differ from the reference only where its margin is small.
void check_fast_ids(const std::string& path, const std::string& file) {
  Runner runner(path, Precision::kFast, KvType::kF16);
  const nlohmann::json golden_file = golden_json(file);
  for (const auto& reference : golden_file["refs"]) {
    CAPTURE(reference["tag"].get<std::string>());
    const auto prompt = reference["prompt_ids"].get<std::vector<int32_t>>();
    const auto wanted = reference["out_ids"].get<std::vector<int32_t>>();
    const auto got = runner.greedy(prompt, wanted.size());
    size_t i = 0;
    while (i < got.size() && got[i] == wanted[i]) ++i;
    if (i == wanted.size()) continue;
    const auto& margin = reference["top1_top2_margin_per_step"][i];
    CAPTURE(i);
    CHECK((margin.is_null() || margin.get<double>() < 1.0));
  }
}

TEST_CASE("fast ids differ from the reference only at small margins") {
  check_fast_ids(gemma(), "greedy-gemma-f32.json");
  check_fast_ids(smollm2(), "greedy-smollm2-f32.json");
}

}  // namespace
}  // namespace doppler::test
