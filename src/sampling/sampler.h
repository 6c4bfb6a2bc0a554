#pragma once
// Logits -> token id. One fixed order: repetition penalty, top-k, top-p, min-p, temperature, draw.
#include <cstdint>
#include <span>
#include <vector>

#include "base/result.h"
#include "sampling/random.h"

namespace doppler {

struct SamplerOptions {
  float temperature = 0.8f;         // 0 or below: arg max, the lowest id on ties
  int32_t top_k = 40;               // keep the k likeliest; 0 or below: all
  float top_p = 0.95f;              // keep the likeliest whose probabilities reach p; 0 or below: one; 1: all
  float min_p = 0.0f;               // keep those at least min_p times as likely as the likeliest; 0: all
  float repetition_penalty = 1.0f;  // 1: none; must be above 0
  uint32_t repetition_window = 64;  // how many of the last ids count as repeated; 0: none
  uint64_t seed = 0;
};

/// Errors (kBadInput): a value that is NaN or infinite, or a repetition penalty of 0 or below.
Result<void> check_sampler_options(const SamplerOptions& options);

/// Draws ids, one a step. Same options, logits and history give the same ids.
///
/// - Repetition penalty (Keskar et al. 2019): the logit of each distinct id among the last
/// `repetition_window`
///   of the history is divided by R if positive, multiplied by R otherwise.
/// - top-p and min-p look at the softmax of what is left at temperature 1, so temperature changes how often a
///   kept token is drawn, never which tokens are kept.
/// - Equal logits are ordered by id, the lowest first.
class Sampler {
 public:
  explicit Sampler(const SamplerOptions& options) : options_(options), random_(options.seed) {}

  /// `logits` is [vocab]; `history` holds the prompt and what was generated, oldest first. A logit of -inf
  /// marks a token that may not be drawn. Errors (kBadInput): NaN or +inf, or nothing but -inf.
  Result<int32_t> sample(std::span<const float> logits, std::span<const int32_t> history);

 private:
  struct Candidate {
    float logit;
    int32_t id;
  };
  static bool better(const Candidate& a, const Candidate& b) {
    return a.logit > b.logit || (a.logit == b.logit && a.id < b.id);
  }
  std::span<const float> penalize(std::span<const float> logits, std::span<const int32_t> history);
  size_t sort_best(size_t first, size_t count);
  size_t keep_top_p(size_t count);
  int32_t draw(size_t count, float max_logit);

  SamplerOptions options_;
  Random random_;
  std::vector<float> penalized_;
  std::vector<int32_t> seen_;
  std::vector<Candidate> candidates_;
};

/// The id of the greatest logit, the lowest id on ties; an error if any is NaN or +inf, or all are -inf.
Result<int32_t> arg_max(std::span<const float> logits);

}  // namespace doppler
