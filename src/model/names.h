#pragma once
// The names weights go by: one role, two spellings (GGUF's "blk.3.attn_q.weight" and Hugging Face's).
#include <cstdint>
#include <string>

#include "model/config.h"

namespace doppler::model {

enum class Role : uint8_t {
  kEmbedding,    // [vocab, hidden]
  kFinalNorm,    // [hidden]
  kHead,         // [vocab, hidden]; absent where tied
  kRopeFactors,  // [rotary_dim / 2]; GGUF only: what each inverse frequency is divided by
  kAttnNorm,     // before attention
  kQ,
  kK,
  kV,  // [heads * head_dim, hidden]
  kQNorm,
  kKNorm,         // [head_dim]
  kAttnOut,       // [hidden, heads * head_dim]
  kPostAttnNorm,  // after attention, where norms are sandwiched
  kFfnNorm,       // before the feed-forward
  kGate,
  kUp,           // [ffn, hidden]
  kDown,         // [hidden, ffn]
  kPostFfnNorm,  // after the feed-forward, where norms are sandwiched
};

/// The file's name of a weight. `layer` counts for the roles that layers have. Hugging Face calls LLaMA's
/// pre-FFN norm post_attention_layernorm, and Gemma's pre_feedforward_layernorm: config.sandwich_norms
/// decides.
std::string weight_name(const ModelConfig& config, Role role, uint32_t layer = 0);

/// The bias that belongs to a linear weight's name: "….weight" -> "….bias".
std::string bias_name(const std::string& weight_name);

}  // namespace doppler::model
