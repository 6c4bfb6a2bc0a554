#include "pipelines/text/eval.h"

#include <algorithm>
#include <cmath>
#include <memory>
#include <vector>

#include "sampling/logprob.h"

namespace doppler {
namespace {

// Rows of logits held at once: 32 of 262,144 are 32 MiB.
constexpr uint32_t kRowsAtOnce = 32;

/// An executor with a cache of one window.
struct Runner {
  Executor* executor;
  std::unique_ptr<KvCache> kv;
  std::vector<float> logits;  // [kRowsAtOnce, vocab]

  Result<void> forward(std::span<const int32_t> ids, LogitRows rows, uint32_t vocab) {
    return executor->forward(
        *kv, ids, rows,
        rows == LogitRows::kNone ? std::span<float>() : std::span(logits).first(ids.size() * vocab));
  }
};

Result<Runner> make_runner(Executor& executor, KvType kv_type, const EvalOptions& options, uint32_t vocab) {
  DOPPLER_TRY(auto kv, executor.make_kv(options.window, kv_type));
  return Runner{&executor, std::move(kv), std::vector<float>(static_cast<size_t>(kRowsAtOnce) * vocab)};
}

Result<double> negative_log_likelihood(std::span<const float> logits, int32_t next) {
  DOPPLER_TRY(const double normalizer, log_sum_exp(logits));
  return normalizer - static_cast<double>(logits[static_cast<size_t>(next)]);
}

}  // namespace

Result<EvalResult> evaluate(Executor& executor, Executor* reference, uint32_t vocab,
                            std::span<const int32_t> ids, const EvalOptions& options,
                            const Progress& progress) {
  if (options.window < 4)
    return fail(ErrorCode::kBadInput, "[eval] a window of at least 4 tokens wanted, got {}", options.window);
  size_t windows = ids.size() / options.window;
  if (windows == 0)
    return fail(ErrorCode::kBadInput,
                "[eval] a text of at least {} tokens wanted, got {}; give a longer text", options.window,
                ids.size());
  if (options.max_windows > 0) windows = std::min<size_t>(windows, options.max_windows);

  std::vector<Runner> runners;
  DOPPLER_TRY(Runner main, make_runner(executor, options.kv, options, vocab));
  runners.push_back(std::move(main));
  if (reference) {
    DOPPLER_TRY(Runner other, make_runner(*reference, options.reference_kv, options, vocab));
    runners.push_back(std::move(other));
  }

  double nll = 0, reference_nll = 0, kl_sum = 0;
  EvalResult out;
  const uint32_t first = options.window / 2;
  for (size_t w = 0; w < windows; ++w) {
    std::vector<int32_t> window(ids.begin() + static_cast<ptrdiff_t>(w * options.window),
                                ids.begin() + static_cast<ptrdiff_t>((w + 1) * options.window));
    if (options.bos) window[0] = *options.bos;
    for (Runner& runner : runners) runner.kv->truncate(0);

    // The last token's prediction lies outside the window, so it is never fed.
    for (uint32_t at = 0; at + 1 < options.window;) {
      const bool scored = at >= first;
      uint32_t count = std::min((scored ? options.window - 1 : first) - at, executor.max_chunk());
      if (reference) count = std::min(count, reference->max_chunk());
      if (options.chunk > 0) count = std::min(count, options.chunk);
      if (scored) count = std::min(count, kRowsAtOnce);
      const auto chunk = std::span<const int32_t>(window).subspan(at, count);
      for (Runner& runner : runners)
        DOPPLER_CHECK_OK(runner.forward(chunk, scored ? LogitRows::kAll : LogitRows::kNone, vocab));
      for (uint32_t row = 0; scored && row < count; ++row) {
        const int32_t next = window[at + row + 1];
        const auto logits = std::span<const float>(runners[0].logits).subspan(size_t{row} * vocab, vocab);
        DOPPLER_TRY(const double loss, negative_log_likelihood(logits, next));
        nll += loss;
        ++out.predictions;
        if (!reference) continue;
        const auto exact = std::span<const float>(runners[1].logits).subspan(size_t{row} * vocab, vocab);
        DOPPLER_TRY(const double exact_loss, negative_log_likelihood(exact, next));
        DOPPLER_TRY(const double kl, kl_divergence(exact, logits));
        reference_nll += exact_loss;
        kl_sum += kl;
        out.kl_max = std::max(out.kl_max, kl);
      }
      at += count;
    }
    ++out.windows;
    if (progress && !progress("windows", w + 1, windows))
      return fail(ErrorCode::kCancelled, "[eval] interrupted");
  }
  const double count = static_cast<double>(out.predictions);
  out.perplexity = std::exp(nll / count);
  if (reference) {
    out.reference_perplexity = std::exp(reference_nll / count);
    out.kl_mean = kl_sum / count;
  }
  return out;
}

}  // namespace doppler
