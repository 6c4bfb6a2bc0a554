#pragma once
// What a model is, as data: filled from GGUF metadata, from an RDRR manifest or from config.json, and read by
// the family's graph builder. Defaults are those of a plain LLaMA.
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "formats/gguf/gguf.h"
#include "graph/graph.h"

namespace doppler::model {

enum class Family { kLlama, kGemma3 };
std::string_view family_name(Family family);  // "llama", "gemma3"

/// Which names the weights go by.
enum class NameStyle { kHuggingFace, kGguf };

struct RopeScaling {
  std::string type;  // "", "linear", "dynamic", "yarn", "llama3", "longrope"
  float factor = 1.0f;
  float low_freq_factor = 1.0f, high_freq_factor = 4.0f;  // llama3
  uint32_t original_context = 0;                          // llama3: positions before stretching
};

struct ModelConfig {
  Family family = Family::kLlama;
  std::string name;  // general.name or modelId
  NameStyle names = NameStyle::kHuggingFace;
  std::string name_prefix;  // "language_model." where the files have it

  uint32_t layers = 0, hidden = 0, ffn = 0, heads = 0, kv_heads = 0, head_dim = 0, vocab = 0;
  uint32_t max_context = 0;  // positions the model was trained for

  float rms_eps = 1e-6f;
  float norm_weight_offset = 0;  // 1: the file stores w, the model multiplies by w + 1 (Gemma from HF)
  bool sandwich_norms = false;   // Gemma: norms after attention and FFN too
  bool qk_norm = false;
  bool tied_head = false;
  float embedding_scale = 1;  // Gemma: sqrt(hidden)
  graph::Activation activation = graph::Activation::kSilu;
  float attention_scale = 0;  // 1 / sqrt(query_pre_attn_scalar or head_dim)
  float attention_softcap = 0, final_softcap = 0;

  float rope_base = 10000.0f;
  float rope_base_local = 10000.0f;  // sliding layers
  RopeScaling rope_scaling;          // global layers only
  bool rope_interleaved = false;     // LLaMA weights of GGUF files
  uint32_t rotary_dim = 0;           // = head_dim unless partial

  uint32_t window = 0;        // sliding layers; 0: none
  std::vector<bool> sliding;  // per layer; empty: none slides

  // From the tokenizer's side of the file, used by generation.
  std::vector<int32_t> end_ids;    // every end-of-sequence / end-of-turn id the file names
  std::string chat_template_type;  // RDRR: "chatml", "gemma", … or ""
};

/// Everything is checked here (zero or absurd sizes, heads that do not divide, counts that contradict the
/// tensors), so that graph builders may trust it. Errors name the key, the value and what is allowed.
Result<ModelConfig> config_from_gguf(const gguf::GgufFile& file);

}  // namespace doppler::model
