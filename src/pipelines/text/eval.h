#pragma once
// Perplexity of a text, and how far another precision's predictions are from exact ones.
#include <cstdint>
#include <optional>
#include <span>
#include <string_view>

#include "base/result.h"
#include "exec/executor.h"

namespace doppler {

struct EvalOptions {
  uint32_t window = 512;       // tokens a window, at least 4; the second half is scored
  uint32_t max_windows = 0;    // 0: all
  uint32_t chunk = 0;          // tokens a forward pass; 0: as many as the device takes
  std::optional<int32_t> bos;  // replaces each window's first token, where the model adds one
  KvType kv = KvType::kF16;
  KvType reference_kv = KvType::kF32;
};

struct EvalResult {
  double perplexity = 0;
  std::optional<double> reference_perplexity;  // with a reference
  std::optional<double> kl_mean;               // mean over the scored predictions, in nats
  double kl_max = 0;
  uint32_t windows = 0;
  uint64_t predictions = 0;
};

/// llama-perplexity's protocol: the text is cut into consecutive windows, an incomplete last one is dropped;
/// in each the predictions of tokens window/2 + 1 ... window - 1 are scored (255 of 512). With a `reference`
/// executor, its perplexity and the mean KL divergence of `executor` from it are measured over the same
/// predictions. `progress` counts windows. Errors: kBadInput if the text is shorter than a window.
Result<EvalResult> evaluate(Executor& executor, Executor* reference, uint32_t vocab,
                            std::span<const int32_t> ids, const EvalOptions& options,
                            const Progress& progress);

}  // namespace doppler
