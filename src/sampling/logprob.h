#pragma once
// log-softmax of raw logits in double: what --logprobs reports and perplexity and KL divergence are made of.
#include <cstdint>
#include <span>

#include "base/result.h"
#include "doppler/generate.h"  // TokenLogprob, StepLogprobs

namespace doppler {

/// log(sum(exp(logits))). Error (kBadInput) if a logit is NaN or +inf, or all are -inf.
Result<double> log_sum_exp(std::span<const float> logits);

/// `logits` is [vocab], `chosen` below vocab. `top` may exceed the vocabulary: all are given then.
Result<StepLogprobs> step_logprobs(std::span<const float> logits, int32_t chosen, uint32_t top);

/// Kullback-Leibler divergence of the distribution of `approximate` from that of `exact`, in nats:
/// sum p_exact * (log p_exact - log p_approximate). Both are raw logits of the same length.
Result<double> kl_divergence(std::span<const float> exact, std::span<const float> approximate);

}  // namespace doppler
