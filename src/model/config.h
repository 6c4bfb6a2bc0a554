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

enum class Family {
  kLlama,
  kMistral,
  kMixtral,
  kGpt2,
  kQwen2,
  kQwen3,
  kQwen3Moe,
  kGemma,
  kGemma2,
  kGemma3,
  kGptOss,
  kPhi3,
  kBert,
};
std::string_view family_name(Family family);  // "llama", "qwen3-moe", …

/// Which names the weights go by.
enum class NameStyle { kHuggingFace, kGguf };

struct RopeScaling {
  std::string type;  // "", "linear", "dynamic", "yarn", "llama3", "longrope"
  float factor = 1.0f;
  float low_freq_factor = 1.0f, high_freq_factor = 4.0f;  // llama3
  uint32_t original_context = 0;          // llama3, yarn, longrope: positions before stretching
  float beta_fast = 32, beta_slow = 1;    // yarn: turns between which frequencies are blended
  bool truncate = true;                   // yarn: the blend begins and ends at whole pairs
  std::optional<float> attention_factor;  // yarn, longrope: the magnitude, where the file states it
  float mscale = 0, mscale_all_dim = 0;   // yarn: their quotient is the magnitude, where both are set
  std::vector<float> short_factors, long_factors;  // longrope: divide the inverse frequencies
};

/// How an embedder makes one vector of a text.
enum class Pooling { kNone, kFirst, kMean, kLast };

struct ModelConfig {
  Family family = Family::kLlama;
  std::string name;  // general.name or modelId
  NameStyle names = NameStyle::kHuggingFace;
  std::string name_prefix;      // "language_model." where the files have it
  std::string body = "model.";  // Hugging Face: between the prefix and "layers.", not before "lm_head"

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

  bool layer_norm = false;         // norms subtract the mean and have biases (GPT-2, BERT); rms_eps is theirs
  bool learned_positions = false;  // a table of positions instead of RoPE
  bool gated_ffn = true;           // false: down(act(up x))
  bool transposed = false;         // linear weights are stored [in, out] (GPT-2 from Hugging Face)
  bool experts_transposed = false;  // so are stacks of experts (gpt-oss from Hugging Face)
  bool sinks = false;               // one learned logit a head in every softmax (gpt-oss)
  bool causal = true;               // false: an encoder
  Pooling pooling = Pooling::kNone;
  bool normalize = false;   // embedders: to length 1
  uint32_t text_limit = 0;  // embedders: most ids of a text; 0: max_context

  uint32_t experts = 0, experts_per_token = 0, expert_ffn = 0;
  graph::Routing routing = graph::Routing::kSoftmaxOfChosen;
  std::vector<bool> dense;             // per layer: has no experts; empty: all have, if there are any
  bool gate_interleaved = false;       // gate and up in alternate columns of one weight
  float act_limit = 0, act_alpha = 1;  // kSwigluClamped

  float rope_base = 10000.0f;
  float rope_base_local = 10000.0f;  // sliding layers
  bool local_rope = false;           // sliding layers have their own base and no scaling (Gemma 3)
  RopeScaling rope_scaling;          // where local_rope: global layers only
  bool rope_interleaved = false;     // LLaMA weights of GGUF files
  uint32_t rotary_dim = 0;           // = head_dim unless partial

  uint32_t window = 0;        // sliding layers; 0: none
  std::vector<bool> sliding;  // per layer; empty: none slides

  // From the tokenizer's side of the file, used by generation.
  std::vector<int32_t> end_ids;    // every end-of-sequence / end-of-turn id the file names
  std::string chat_template_type;  // RDRR: "chatml", "gemma", … or ""
};

/// Sets what a family's files leave unsaid: norms, activation, where q and k are normalised, which layers
/// slide, how experts are chosen. Sizes and names must be there already.
void apply_family(ModelConfig& config);

/// The layers of a family that slide where the files do not list them, from `window`; `period` 0: the
/// family's own.
void apply_window(ModelConfig& config, uint32_t period = 0);

/// Everything is checked here (zero or absurd sizes, heads that do not divide, counts that contradict the
/// tensors), so that graph builders may trust it. Errors name the key, the value and what is allowed.
Result<ModelConfig> config_from_gguf(const gguf::GgufFile& file);

}  // namespace doppler::model
