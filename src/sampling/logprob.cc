#include "sampling/logprob.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "sampling/sampler.h"

namespace doppler {

Result<double> log_sum_exp(std::span<const float> logits) {
  DOPPLER_TRY(const int32_t best, arg_max(logits));
  const double max_logit = static_cast<double>(logits[static_cast<size_t>(best)]);
  double sum = 0;
  for (const float logit : logits) sum += std::exp(static_cast<double>(logit) - max_logit);
  return max_logit + std::log(sum);
}

Result<StepLogprobs> step_logprobs(std::span<const float> logits, int32_t chosen, uint32_t top) {
  if (chosen < 0 || static_cast<size_t>(chosen) >= logits.size())
    return fail(ErrorCode::kBadInput, "[sampling] id below {} wanted, got {}", logits.size(), chosen);
  DOPPLER_TRY(const double normalizer, log_sum_exp(logits));
  const auto entry = [&](int32_t id) {
    return TokenLogprob{id, static_cast<double>(logits[static_cast<size_t>(id)]) - normalizer};
  };
  StepLogprobs out{entry(chosen), {}};
  const size_t count = std::min<size_t>(top, logits.size());
  if (count == 0) return out;
  std::vector<int32_t> ids(logits.size());
  std::iota(ids.begin(), ids.end(), 0);
  std::partial_sort(ids.begin(), ids.begin() + static_cast<ptrdiff_t>(count), ids.end(),
                    [&](int32_t a, int32_t b) {
                      const float la = logits[static_cast<size_t>(a)], lb = logits[static_cast<size_t>(b)];
                      return la > lb || (la == lb && a < b);
                    });
  out.top.reserve(count);
  for (size_t i = 0; i < count; ++i) out.top.push_back(entry(ids[i]));
  return out;
}

Result<double> kl_divergence(std::span<const float> exact, std::span<const float> approximate) {
  if (exact.size() != approximate.size())
    return fail(ErrorCode::kBadInput, "[sampling] logits of the same length wanted, got {} and {}",
                exact.size(), approximate.size());
  DOPPLER_TRY(const double exact_sum, log_sum_exp(exact));
  DOPPLER_TRY(const double approximate_sum, log_sum_exp(approximate));
  double kl = 0;
  for (size_t i = 0; i < exact.size(); ++i) {
    const double log_p = static_cast<double>(exact[i]) - exact_sum;
    const double p = std::exp(log_p);
    if (p > 0) kl += p * (log_p - (static_cast<double>(approximate[i]) - approximate_sum));
  }
  return kl;
}

}  // namespace doppler
