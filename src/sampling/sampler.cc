#include "sampling/sampler.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <random>

namespace doppler {

Result<void> check_sampler_options(const SamplerOptions& options) {
  const auto finite = [](float value, std::string_view name) -> Result<void> {
    if (!std::isfinite(value))
      return fail(ErrorCode::kBadInput, "[sampling] {} must be a finite number, got {}", name, value);
    return {};
  };
  DOPPLER_CHECK_OK(finite(options.temperature, "temperature"));
  DOPPLER_CHECK_OK(finite(options.top_p, "top-p"));
  DOPPLER_CHECK_OK(finite(options.min_p, "min-p"));
  DOPPLER_CHECK_OK(finite(options.repetition_penalty, "repetition-penalty"));
  if (options.repetition_penalty <= 0)
    return fail(ErrorCode::kBadInput, "[sampling] repetition-penalty must be above 0, got {}; 1 turns it off",
                options.repetition_penalty);
  return {};
}

namespace {

uint64_t random_seed() {
  std::random_device device;
  // 53 bits: readers of JSON that keep numbers as doubles can hand the seed back unchanged.
  return ((static_cast<uint64_t>(device()) << 32) | device()) >> 11;
}

}  // namespace

Sampler::Sampler(const SamplerOptions& options)
    : options_(options), seed_(options.seed ? *options.seed : random_seed()), random_(seed_) {}

Result<int32_t> arg_max(std::span<const float> logits) {
  float best = -std::numeric_limits<float>::infinity();
  int32_t id = -1;
  // A NaN compares false with everything, so it is caught by the sum of flags and not by the maximum.
  size_t bad = logits.size();
  for (size_t i = 0; i < logits.size(); ++i) {
    const float logit = logits[i];
    if (!(logit <= std::numeric_limits<float>::max()) && bad == logits.size()) bad = i;
    if (logit > best) {
      best = logit;
      id = static_cast<int32_t>(i);
    }
  }
  if (bad != logits.size())
    return fail(ErrorCode::kBadInput, "[sampling] finite logits wanted, token {} has {}", bad, logits[bad]);
  if (id < 0)
    return fail(ErrorCode::kBadInput, "[sampling] a token to draw wanted, all {} logits are -inf",
                logits.size());
  return id;
}

std::span<const float> Sampler::penalize(std::span<const float> logits, std::span<const int32_t> history) {
  const float penalty = options_.repetition_penalty;
  if (penalty == 1.0f || history.empty() || options_.repetition_window == 0) return logits;
  const size_t window = std::min<size_t>(options_.repetition_window, history.size());
  seen_.assign(history.end() - static_cast<ptrdiff_t>(window), history.end());
  std::sort(seen_.begin(), seen_.end());
  seen_.erase(std::unique(seen_.begin(), seen_.end()), seen_.end());
  penalized_.assign(logits.begin(), logits.end());
  for (const int32_t id : seen_) {
    if (id < 0 || static_cast<size_t>(id) >= penalized_.size()) continue;
    float& logit = penalized_[static_cast<size_t>(id)];
    const float scaled = logit > 0 ? logit / penalty : logit * penalty;
    // An absurd penalty must not turn a finite logit into an infinite one.
    if (std::isfinite(scaled)) logit = scaled;
  }
  return penalized_;
}

/// Puts the best of candidates [first, end) into [first, count), in order. Linear in what is left, plus the
/// sort of what was asked for: 262,144 logits are never sorted whole for a few likely ones.
size_t Sampler::sort_best(size_t first, size_t count) {
  const auto begin = candidates_.begin() + static_cast<ptrdiff_t>(first);
  const auto cut = candidates_.begin() + static_cast<ptrdiff_t>(count);
  if (cut != candidates_.end()) std::nth_element(begin, cut, candidates_.end(), better);
  std::sort(begin, cut, better);
  return count;
}

/// How many of the first `count` candidates top-p keeps. They need not be sorted: they are, as far as needed.
size_t Sampler::keep_top_p(size_t count) {
  float max_logit = candidates_[0].logit;
  for (size_t i = 1; i < count; ++i) max_logit = std::max(max_logit, candidates_[i].logit);
  double total = 0;
  for (size_t i = 0; i < count; ++i)
    total += std::exp(static_cast<double>(candidates_[i].logit) - static_cast<double>(max_logit));
  const double wanted = std::max(0.0, static_cast<double>(options_.top_p)) * total;
  double reached = 0;
  size_t sorted = 0;
  for (size_t i = 0; i < count; ++i) {
    if (i == sorted) sorted = sort_best(sorted, std::min(count, std::max<size_t>(64, 4 * sorted)));
    reached += std::exp(static_cast<double>(candidates_[i].logit) - static_cast<double>(max_logit));
    if (reached >= wanted) return i + 1;
  }
  return count;
}

int32_t Sampler::draw(size_t count, float max_logit) {
  // Differences are divided, not logits: a temperature near 0 gives exp(0) and exp(-inf), never inf - inf.
  const double inverse = 1.0 / static_cast<double>(options_.temperature);
  const auto weight = [&](size_t i) {
    const double below = static_cast<double>(candidates_[i].logit) - static_cast<double>(max_logit);
    return below == 0 ? 1.0 : std::exp(below * inverse);
  };
  double total = 0;
  for (size_t i = 0; i < count; ++i) total += weight(i);
  const double target = random_.next_unit() * total;
  double reached = 0;
  size_t last = 0;
  for (size_t i = 0; i < count; ++i) {
    const double w = weight(i);
    if (w <= 0) continue;
    reached += w;
    last = i;
    if (reached > target) break;
  }
  return candidates_[last].id;
}

Result<int32_t> Sampler::sample(std::span<const float> logits, std::span<const int32_t> history) {
  const std::span<const float> scores = penalize(logits, history);
  DOPPLER_TRY(const int32_t best, arg_max(scores));
  if (options_.temperature <= 0 || options_.top_k == 1 || options_.top_p <= 0) return best;

  candidates_.clear();
  candidates_.reserve(scores.size());
  for (size_t i = 0; i < scores.size(); ++i)
    if (std::isfinite(scores[i])) candidates_.push_back({scores[i], static_cast<int32_t>(i)});

  if (options_.top_k > 0 && static_cast<size_t>(options_.top_k) < candidates_.size()) {
    sort_best(0, static_cast<size_t>(options_.top_k));
    candidates_.resize(static_cast<size_t>(options_.top_k));
  }
  if (options_.top_p < 1) candidates_.resize(keep_top_p(candidates_.size()));
  const float max_logit = scores[static_cast<size_t>(best)];
  if (options_.min_p > 0) {
    // p >= min_p * p_max is the same as logit >= max + log(min_p); above 1 it keeps the likeliest alone.
    const double floor =
        static_cast<double>(max_logit) + std::log(std::min(1.0, static_cast<double>(options_.min_p)));
    std::erase_if(candidates_, [&](const Candidate& c) { return static_cast<double>(c.logit) < floor; });
  }
  return draw(candidates_.size(), max_logit);
}

}  // namespace doppler
