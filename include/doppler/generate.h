#pragma once
// What is asked of a generation, and what it gives.
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "doppler/types.h"

namespace doppler {

/// How an id is chosen from the logits. Order: repetition penalty, top-k, top-p, min-p, temperature, draw.
struct SamplerOptions {
  float temperature = 0.8f;         // 0 or below: arg max, the lowest id on ties
  int32_t top_k = 40;               // keep the k likeliest; 0 or below: all
  float top_p = 0.95f;              // keep the likeliest whose probabilities reach p; 0 or below: one; 1: all
  float min_p = 0.0f;               // keep those at least min_p times as likely as the likeliest; 0: all
  float repetition_penalty = 1.0f;  // 1: none; must be above 0
  uint32_t repetition_window = 64;  // how many of the last ids count as repeated; 0: none
  std::optional<uint64_t> seed;     // unset: another one every time
};

struct GenerateOptions {
  SamplerOptions sampling;
  uint32_t max_tokens = 512;         // 0: none
  std::vector<std::string> stop;     // texts that end the generation; none may be empty
  std::optional<uint32_t> logprobs;  // with each id its log-probability and this many of the likeliest
  uint32_t chunk = 0;                // prompt tokens a forward pass; 0: as many as the device takes
  bool ignore_end = false;           // go on past end tokens (measurements)
  bool parse_special = true;         // a plain prompt that spells a control token means it; never in chats
  bool text = true;                  // false: ids only, the tokenizer is not touched
};

struct GenerateCallbacks {
  /// Text as it comes: whole characters, never a part of a stop text. Returning false stops (kCancelled).
  std::function<bool(std::string_view text)> on_text;
  /// Each id that does not end the generation, after its text. Returning false stops.
  std::function<bool(int32_t id)> on_id;
  /// After each chunk of the prompt. Returning false stops.
  std::function<bool(uint32_t done_tokens, uint32_t total_tokens)> on_prompt;
};

struct TokenLogprob {
  int32_t id = 0;
  double logprob = 0;  // log-softmax of the raw logits
};

/// The chosen token's log-probability and the likeliest tokens, the likeliest first (lowest id on ties).
struct StepLogprobs {
  TokenLogprob chosen;
  std::vector<TokenLogprob> top;
};

enum class FinishReason {
  kStop,       // an end token, or one of GenerateOptions::stop
  kLength,     // max_tokens, or the context's end
  kCancelled,  // Session::cancel(), or a callback returned false; what was generated is kept
  kError,      // the device failed on the way; Generation::error says how
};

struct Timings {
  double load_ms = 0;  // of the model, once
  uint32_t prompt_tokens = 0;
  double prompt_ms = 0;       // until the prompt's logits were there
  double first_token_ms = 0;  // from the call to the first id
  uint32_t gen_tokens = 0;
  double gen_ms = 0;  // from the prompt's logits to the last id: gen_tokens - 1 forward passes
  std::optional<ExpertStats> experts;  // of this generation; only with experts on demand
};

struct Generation {
  std::vector<int32_t> prompt_ids;
  std::vector<int32_t> ids;  // every generated id, the end token that stopped it included
  std::string text;          // what was streamed; without end token and stop text; empty without a tokenizer
  FinishReason finish = FinishReason::kLength;
  std::string error;                       // kError only: the message
  ErrorCode error_code = ErrorCode::kGpu;  // kError only
  std::vector<StepLogprobs> logprobs;      // one an id, if asked for
  uint64_t seed = 0;                       // what the draws started from: the same seed gives the same ids
  Timings timings;
};

struct ChatMessage {
  std::string role;  // "system", "user", "assistant" or "tool"
  std::string content;
};

}  // namespace doppler
