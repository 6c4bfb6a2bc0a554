#pragma once
// `doppler eval`: perplexity of a text under a model, and its distance from exact precision.
#include <optional>
#include <string>

#include "engine/backend.h"
#include "pipelines/text/eval.h"

namespace doppler {

struct EvaluateRequest {
  std::string model;  // a path or a catalogue name
  std::string text;
  BackendOptions backend;
  std::optional<KvType> kv;    // unset: f16, f32 with exact precision
  bool against_exact = false;  // also run exact precision and measure the KL divergence from it
  uint32_t window = 512, max_windows = 0, chunk = 0;
  Progress progress;  // of loading (bytes) and of the windows
};

struct EvaluateReport {
  EvalResult result;
  std::string device;
  uint64_t tokens = 0;  // of the whole text
};

/// The text is tokenised once, with BOS where the model adds one and control tokens unparsed.
Result<EvaluateReport> evaluate_model(const EvaluateRequest& request);

}  // namespace doppler
