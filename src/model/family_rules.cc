// What each family means beyond its files' numbers.
#include <cmath>

#include "model/config.h"

namespace doppler::model {
namespace {

using graph::Activation;

void gemma(ModelConfig& c) {
  c.activation = Activation::kGeluTanh;  // early config.json of Gemma say "gelu" and mean this
  c.embedding_scale = std::sqrt(static_cast<float>(c.hidden));
  c.norm_weight_offset = c.names == NameStyle::kHuggingFace ? 1.0f : 0.0f;  // GGUF files hold w + 1
}

}  // namespace

std::string_view family_name(Family family) {
  switch (family) {
    case Family::kLlama:
      return "llama";
    case Family::kMistral:
      return "mistral";
    case Family::kMixtral:
      return "mixtral";
    case Family::kGpt2:
      return "gpt2";
    case Family::kQwen2:
      return "qwen2";
    case Family::kQwen3:
      return "qwen3";
    case Family::kQwen3Moe:
      return "qwen3-moe";
    case Family::kGemma:
      return "gemma";
    case Family::kGemma2:
      return "gemma2";
    case Family::kGemma3:
      return "gemma3";
    case Family::kGptOss:
      return "gpt-oss";
    case Family::kPhi3:
      return "phi3";
    case Family::kBert:
      return "bert";
  }
  return "?";
}

void apply_family(ModelConfig& c) {
  switch (c.family) {
    case Family::kLlama:
    case Family::kMistral:
    case Family::kMixtral:
    case Family::kQwen2:
    case Family::kPhi3:
      break;
    case Family::kQwen3:
    case Family::kQwen3Moe:
      c.qk_norm = true;
      break;
    case Family::kGemma:
      gemma(c);
      break;
    case Family::kGemma2:
      gemma(c);
      c.sandwich_norms = true;
      break;
    case Family::kGemma3:
      gemma(c);
      c.sandwich_norms = c.qk_norm = c.local_rope = true;
      break;
    case Family::kGptOss:
      c.sinks = true;
      c.activation = Activation::kSwigluClamped;
      c.act_limit = 7.0f;
      c.act_alpha = 1.702f;
      c.gate_interleaved = c.experts_transposed = c.names == NameStyle::kHuggingFace;
      c.rope_scaling.truncate = false;
      break;
    case Family::kGpt2:
      c.layer_norm = c.learned_positions = true;
      c.gated_ffn = false;
      c.activation = Activation::kGeluTanh;
      c.transposed = c.names == NameStyle::kHuggingFace;
      break;
    case Family::kBert:
      c.layer_norm = c.learned_positions = true;
      c.gated_ffn = c.causal = false;
      c.activation = Activation::kGeluErf;
      break;
  }
}

void apply_window(ModelConfig& c, uint32_t period) {
  if (c.window == 0) return;
  uint32_t own = 0;  // 0: every layer slides
  if (c.family == Family::kGemma2 || c.family == Family::kGptOss) own = 2;
  if (c.family == Family::kGemma3) own = 6;
  if (period == 0) period = own;
  c.sliding.assign(c.layers, true);
  if (period == 0) return;
  for (uint32_t i = 0; i < c.layers; ++i)
    c.sliding[i] = i % period != period - 1;  // the last of each is global
}

}  // namespace doppler::model
