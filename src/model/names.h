#pragma once
// The names weights go by: one role, two spellings (GGUF's "blk.3.attn_q.weight" and Hugging Face's).
#include <cstdint>
#include <string>
#include <vector>

#include "formats/tensor_source.h"
#include "model/config.h"

namespace doppler::model {

enum class Role : uint8_t {
  kEmbedding,      // [vocab, hidden]
  kPositions,      // [positions, hidden]
  kTokenTypes,     // [types, hidden]; BERT
  kEmbeddingNorm,  // [hidden]; BERT
  kFinalNorm,      // [hidden]
  kHead,           // [vocab, hidden]; absent where tied
  kRopeFactors,    // [rotary_dim / 2]; GGUF only: what each inverse frequency is divided by
  kRopeShort,
  kRopeLong,  // the same for LongRoPE
  kAttnNorm,  // before attention
  kQ,
  kK,
  kV,    // [heads * head_dim, hidden]
  kQkv,  // the three in one
  kQNorm,
  kKNorm,         // [head_dim]
  kSinks,         // [heads]
  kAttnOut,       // [hidden, heads * head_dim]
  kPostAttnNorm,  // after attention, where norms are sandwiched
  kFfnNorm,       // before the feed-forward
  kGate,
  kUp,           // [ffn, hidden]
  kGateUp,       // both in one, gate first
  kDown,         // [hidden, ffn]
  kPostFfnNorm,  // after the feed-forward, where norms are sandwiched
  kRouter,       // [experts, hidden]
  kExpertGate,
  kExpertUp,      // a stack of [expert_ffn, hidden]
  kExpertGateUp,  // both in one
  kExpertDown,    // a stack of [hidden, expert_ffn]
};

/// The file's name of a weight. `layer` counts for the roles that layers have. Hugging Face calls LLaMA's
/// pre-FFN norm post_attention_layernorm, and Gemma's pre_feedforward_layernorm: config.sandwich_norms
/// decides. Where a stack of experts is one tensor an expert, "{}" stands for its number.
std::string weight_name(const ModelConfig& config, Role role, uint32_t layer = 0);

/// Other spellings of the same weight, to be tried when weight_name() is not there: experts one by one where
/// they usually are merged, and the other way round.
std::vector<std::string> other_names(const ModelConfig& config, Role role, uint32_t layer);

/// The bias that belongs to a linear weight's name: "….weight" -> "….bias", "…_proj" -> "…_proj_bias".
std::string bias_name(const std::string& weight_name);

/// Finds the prefixes under which `source` stores the embedding and sets them. False: under none that is
/// known.
bool find_prefixes(ModelConfig& config, const TensorSource& source);

}  // namespace doppler::model
