#pragma once
// Logits -> token id. One fixed order: repetition penalty, top-k, top-p, min-p, temperature, draw.
#include <cstdint>
#include <span>
#include <vector>

#include "base/result.h"
#include "doppler/generate.h"  // SamplerOptions
#include "sampling/random.h"

namespace doppler {

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
  /// Without a seed in the options, one is taken from the operating system.
  explicit Sampler(const SamplerOptions& options);

  uint64_t seed() const { return seed_; }

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
  uint64_t seed_;
  Random random_;
  std::vector<float> penalized_;
  std::vector<int32_t> seen_;
  std::vector<Candidate> candidates_;
};

/// The id of the greatest logit, the lowest id on ties; an error if any is NaN or +inf, or all are -inf.
Result<int32_t> arg_max(std::span<const float> logits);

}  // namespace doppler
