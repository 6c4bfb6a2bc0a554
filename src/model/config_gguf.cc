// ModelConfig from GGUF metadata. Keys are those of the GGUF specification (docs/gguf.md of ggml); what files
// of a family leave out is filled by that family's rule, named where it is applied.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "base/text.h"
#include "model/config.h"
#include "model/gguf_keys.h"
#include "model/limits.h"
#include "model/names.h"

namespace doppler::model {
namespace {

struct Architecture {
  const char* name;
  Family family;
};
constexpr Architecture kArchitectures[] = {
    {"llama", Family::kLlama},   {"gpt2", Family::kGpt2},         {"qwen2", Family::kQwen2},
    {"qwen3", Family::kQwen3},   {"qwen3moe", Family::kQwen3Moe}, {"gemma", Family::kGemma},
    {"gemma2", Family::kGemma2}, {"gemma3", Family::kGemma3},     {"gpt-oss", Family::kGptOss},
    {"phi3", Family::kPhi3},     {"bert", Family::kBert},
};

// "llama" stands for Mistral and Mixtral as well.
Result<Architecture> read_architecture(const gguf::GgufFile& file) {
  DOPPLER_TRY(const std::optional<std::string_view> name, file.get_string("general.architecture"));
  if (!name)
    return fail(ErrorCode::kBadFile, "[model] metadata key general.architecture wanted, {} has none",
                file.path());
  std::string known;
  for (const Architecture& architecture : kArchitectures) {
    if (*name == architecture.name) return architecture;
    known += (known.empty() ? "" : ", ") + std::string(architecture.name);
  }
  return fail(ErrorCode::kUnsupported, "[model] general.architecture of {} wanted, got \"{}\"", known,
              printable(*name));
}

Result<void> read_sizes(const GgufKeys& keys, ModelConfig& c) {
  DOPPLER_TRY(c.layers, keys.count("block_count", 1, kMaxLayers));
  DOPPLER_TRY(c.max_context, keys.count("context_length", 1, kMaxContext));
  DOPPLER_TRY(c.hidden, keys.count("embedding_length", 1, kMaxWidth));
  DOPPLER_TRY(c.ffn, keys.count("feed_forward_length", 1, kMaxWidth));
  DOPPLER_TRY(c.heads, keys.count("attention.head_count", 1, kMaxHeads));
  DOPPLER_TRY(const std::optional<uint32_t> kv_heads,
              keys.find_count("attention.head_count_kv", 1, kMaxHeads));
  c.kv_heads = kv_heads.value_or(c.heads);
  if (c.heads % c.kv_heads != 0)
    return fail(ErrorCode::kBadFile, "[model] {} that divides {} heads wanted, got {}",
                keys.key("attention.head_count_kv"), c.heads, c.kv_heads);

  DOPPLER_TRY(const std::optional<uint32_t> key_length,
              keys.find_count("attention.key_length", 1, kMaxHeadDim));
  DOPPLER_TRY(const std::optional<uint32_t> value_length,
              keys.find_count("attention.value_length", 1, kMaxHeadDim));
  if (!key_length && c.hidden % c.heads != 0)
    return fail(ErrorCode::kBadFile, "[model] {} a multiple of {} heads wanted, got {}",
                keys.key("embedding_length"), c.heads, c.hidden);
  c.head_dim = key_length.value_or(c.hidden / c.heads);
  if (value_length.value_or(c.head_dim) != c.head_dim)
    return fail(ErrorCode::kUnsupported, "[model] {} equal to the key length {} wanted, got {}",
                keys.key("attention.value_length"), c.head_dim, *value_length);
  const bool means = c.family == Family::kGpt2 || c.family == Family::kBert;
  DOPPLER_TRY(c.rms_eps,
              keys.number(means ? "attention.layer_norm_epsilon" : "attention.layer_norm_rms_epsilon", 0, 1));
  return {};
}

Result<void> read_rope(const GgufKeys& keys, ModelConfig& c) {
  DOPPLER_TRY(const std::optional<uint32_t> rotary, keys.find_count("rope.dimension_count", 2, c.head_dim));
  c.rotary_dim = rotary.value_or(c.head_dim);
  if (c.rotary_dim % 2 != 0)
    return fail(ErrorCode::kBadFile, "[model] an even {} wanted, got {}", keys.key("rope.dimension_count"),
                c.rotary_dim);
  DOPPLER_TRY(const std::optional<float> base, keys.find_number("rope.freq_base", 1, 1e12));
  c.rope_base = base.value_or(10000.0f);
  // Gemma 3's sliding layers: base 10,000, unscaled, where the file says nothing.
  DOPPLER_TRY(const std::optional<float> local_base, keys.find_number("rope.freq_base_swa", 1, 1e12));
  c.rope_base_local = local_base.value_or(c.local_rope ? 10000.0f : c.rope_base);

  DOPPLER_TRY(c.rope_scaling.type, keys.text("rope.scaling.type"));
  DOPPLER_TRY(const std::optional<float> factor, keys.find_number("rope.scaling.factor", 1e-3, 1e6));
  DOPPLER_TRY(const std::optional<uint32_t> original,
              keys.find_count("rope.scaling.original_context_length", 1, kMaxContext));
  DOPPLER_TRY(const std::optional<float> magnitude, keys.find_number("rope.scaling.attn_factor", 1e-6, 1e6));
  DOPPLER_TRY(const std::optional<float> fast, keys.find_number("rope.scaling.yarn_beta_fast", 1e-6, 1e6));
  DOPPLER_TRY(const std::optional<float> slow, keys.find_number("rope.scaling.yarn_beta_slow", 1e-6, 1e6));
  DOPPLER_TRY(const std::optional<float> old_factor, keys.find_number("rope.scale_linear", 1e-3, 1e6));
  if (c.rope_scaling.type == "none") c.rope_scaling.type.clear();
  if (c.rope_scaling.type.empty() && old_factor) c.rope_scaling.type = "linear";  // files before 2023-11
  c.rope_scaling.factor = factor.value_or(old_factor.value_or(1.0f));
  c.rope_scaling.original_context = original.value_or(c.max_context);
  c.rope_scaling.beta_fast = fast.value_or(32.0f);
  c.rope_scaling.beta_slow = slow.value_or(1.0f);
  // Of YaRN the files state what comes on top of its own magnitude.
  if (magnitude && c.rope_scaling.type == "yarn")
    c.rope_scaling.attention_factor = *magnitude * (1 + 0.1f * std::log(c.rope_scaling.factor));
  else
    c.rope_scaling.attention_factor = magnitude;
  return {};
}

// Vocabulary and token ids: the embedding's rows, the token list and every id the file names must agree.
Result<void> read_vocabulary(const gguf::GgufFile& file, const GgufKeys& keys, ModelConfig& c) {
  const TensorInfo* embedding = file.find(weight_name(c, Role::kEmbedding));
  if (!embedding)
    return fail(ErrorCode::kBadFile, "[model] tensor {} wanted, {} has none; the file is incomplete",
                weight_name(c, Role::kEmbedding), file.path());
  if (embedding->shape.size() != 2 || embedding->rows() == 0 || embedding->rows() > kMaxVocab)
    return fail(ErrorCode::kBadFile, "[model] {} of shape [vocabulary up to {}, {}] wanted, got {} x {}",
                embedding->name, kMaxVocab, c.hidden, embedding->rows(), embedding->columns());
  c.vocab = static_cast<uint32_t>(embedding->rows());

  DOPPLER_TRY(const gguf::Array* const tokens,
              file.get_array("tokenizer.ggml.tokens", gguf::ValueType::kString));
  if (!tokens)
    return fail(ErrorCode::kBadFile, "[model] metadata key tokenizer.ggml.tokens wanted, {} has none",
                file.path());
  if (tokens->count != c.vocab)
    return fail(ErrorCode::kBadFile,
                "[model] tokenizer.ggml.tokens with {} entries, a row of {} each, wanted, got {}", c.vocab,
                embedding->name, tokens->count);
  DOPPLER_TRY(const std::optional<uint32_t> stated, keys.find_count("vocab_size", 1, kMaxVocab));
  if (stated && *stated != c.vocab)
    return fail(ErrorCode::kBadFile, "[model] {} of {}, the rows of {}, wanted, got {}",
                keys.key("vocab_size"), c.vocab, embedding->name, *stated);

  for (const auto& [key, value] : file.metadata()) {
    const bool names_token =
        key.starts_with("tokenizer.ggml.") && (key.ends_with("_token_id") || key.ends_with("_token_ids"));
    if (!names_token || value.type == gguf::ValueType::kArray) continue;
    DOPPLER_TRY(const std::optional<uint64_t> id, file.get_uint(key));
    // Converters write 2^32 - 1 for "none".
    if (id && *id >= c.vocab && *id != UINT32_MAX)
      return fail(ErrorCode::kBadFile, "[model] {} below {} wanted, got {}", key, c.vocab, *id);
  }
  return {};
}

// Every id that ends a turn or a text, as the file names them; spelling is never guessed from.
Result<void> read_end_ids(const gguf::GgufFile& file, ModelConfig& c) {
  const auto add = [&c](uint64_t id) {
    if (id >= c.vocab) return;
    const auto value = static_cast<int32_t>(id);
    if (std::find(c.end_ids.begin(), c.end_ids.end(), value) == c.end_ids.end()) c.end_ids.push_back(value);
  };
  for (const char* key :
       {"tokenizer.ggml.eos_token_id", "tokenizer.ggml.eot_token_id", "tokenizer.ggml.eom_token_id"}) {
    DOPPLER_TRY(const std::optional<uint64_t> id, file.get_uint(key));
    if (id) add(*id);
  }
  DOPPLER_TRY(const std::vector<int64_t> ids, file.get_ints("tokenizer.ggml.eos_token_ids"));
  for (const int64_t id : ids) {
    if (id < 0 || static_cast<uint64_t>(id) >= c.vocab)
      return fail(ErrorCode::kBadFile, "[model] tokenizer.ggml.eos_token_ids below {} wanted, got {}",
                  c.vocab, id);
    add(static_cast<uint64_t>(id));
  }
  return {};
}

// block_count must be the number of layers that the tensors hold.
Result<void> check_layers(const gguf::GgufFile& file, const GgufKeys& keys, const ModelConfig& c) {
  uint64_t present = 0;
  const Role first = c.family == Family::kBert ? Role::kPostAttnNorm : Role::kAttnNorm;
  while (present <= c.layers && file.find(weight_name(c, first, static_cast<uint32_t>(present)))) ++present;
  if (present == c.layers) return {};
  if (present > c.layers)
    return fail(ErrorCode::kBadFile, "[model] {} of at least {} wanted (the tensors hold layer {}), got {}",
                keys.key("block_count"), present, present - 1, c.layers);
  return fail(ErrorCode::kBadFile, "[model] {} of {} wanted (the layers the tensors hold), got {}",
              keys.key("block_count"), present, c.layers);
}

// expert_count and its companions; Mixtral, Qwen3-MoE, gpt-oss.
Result<void> read_experts(const GgufKeys& keys, ModelConfig& c) {
  DOPPLER_TRY(const std::optional<uint32_t> experts, keys.find_count("expert_count", 0, kMaxExperts));
  c.experts = experts.value_or(0);
  if (c.experts == 0) return {};
  if (c.family == Family::kLlama) c.family = Family::kMixtral;
  if (c.family != Family::kMixtral && c.family != Family::kQwen3Moe && c.family != Family::kGptOss)
    return fail(ErrorCode::kUnsupported, "[model] a model without experts wanted, {} is {}",
                keys.key("expert_count"), c.experts);
  DOPPLER_TRY(c.experts_per_token, keys.count("expert_used_count", 1, c.experts));
  DOPPLER_TRY(const std::optional<uint32_t> width,
              keys.find_count("expert_feed_forward_length", 1, kMaxWidth));
  c.expert_ffn = width.value_or(c.ffn);
  return {};
}

Result<void> read_attention(const GgufKeys& keys, ModelConfig& c) {
  float scalar = static_cast<float>(c.head_dim);
  // The largest Gemma 2 (46 layers) and 3 (62) divide by hidden / heads.
  constexpr uint32_t kLayersOfGemma2 = 46, kLayersOfGemma3 = 62;
  if ((c.family == Family::kGemma2 && c.layers == kLayersOfGemma2) ||
      (c.family == Family::kGemma3 && c.layers == kLayersOfGemma3))
    scalar = static_cast<float>(c.hidden) / static_cast<float>(c.heads);
  DOPPLER_TRY(const std::optional<float> scale, keys.find_number("attention.scale", 1e-6, 1e6));
  c.attention_scale = scale.value_or(1.0f / std::sqrt(scalar));
  DOPPLER_TRY(const std::optional<float> attention_cap, keys.find_number("attn_logit_softcapping", 0, 1e6));
  DOPPLER_TRY(const std::optional<float> final_cap, keys.find_number("final_logit_softcapping", 0, 1e6));
  // Gemma 2's are part of the model, whether its file says so or not.
  const bool capped = c.family == Family::kGemma2;
  c.attention_softcap = attention_cap.value_or(capped ? 50.0f : 0.0f);
  c.final_softcap = final_cap.value_or(capped ? 30.0f : 0.0f);
  return {};
}

Result<void> read_window(const gguf::GgufFile& file, const GgufKeys& keys, ModelConfig& c) {
  DOPPLER_TRY(const std::optional<uint32_t> window,
              keys.find_count("attention.sliding_window", 0, kMaxContext));
  c.window = window.value_or(0);
  if (c.window == 0) return {};
  const gguf::Value* pattern = file.value(keys.key("attention.sliding_window_pattern"));
  uint32_t period = 0;
  if (pattern && pattern->type != gguf::ValueType::kArray) {
    DOPPLER_TRY(period, keys.count("attention.sliding_window_pattern", 1, kMaxLayers));
  }
  apply_window(c, period);
  if (pattern && pattern->type == gguf::ValueType::kArray) {
    DOPPLER_TRY(const gguf::Array* const flags,
                file.get_array(keys.key("attention.sliding_window_pattern"), gguf::ValueType::kBool));
    if (flags->count != c.layers || flags->raw.size() != c.layers)
      return fail(ErrorCode::kBadFile, "[model] {} with {} entries wanted, got {}",
                  keys.key("attention.sliding_window_pattern"), c.layers, flags->count);
    for (uint32_t i = 0; i < c.layers; ++i) c.sliding[i] = flags->raw[i] != std::byte{0};
  }
  return {};
}

// Embedders: 1 mean, 2 the first token, 3 the last; 0 none.
Result<void> read_pooling(const GgufKeys& keys, ModelConfig& c) {
  DOPPLER_TRY(const std::optional<uint32_t> kind, keys.find_count("pooling_type", 0, 3));
  constexpr Pooling kKinds[] = {Pooling::kNone, Pooling::kMean, Pooling::kFirst, Pooling::kLast};
  c.pooling = kKinds[kind.value_or(0)];
  if (c.family == Family::kBert && c.pooling == Pooling::kNone) c.pooling = Pooling::kMean;
  c.normalize = c.pooling != Pooling::kNone;
  return {};
}

}  // namespace

Result<ModelConfig> config_from_gguf(const gguf::GgufFile& file) {
  ModelConfig c;
  DOPPLER_TRY(const Architecture architecture, read_architecture(file));
  c.family = architecture.family;
  c.names = NameStyle::kGguf;
  DOPPLER_TRY(const std::optional<std::string_view> name, file.get_string("general.name"));
  c.name = std::string(name.value_or(architecture.name));

  const GgufKeys keys(file, architecture.name);
  DOPPLER_CHECK_OK(read_sizes(keys, c));
  DOPPLER_CHECK_OK(read_experts(keys, c));
  apply_family(c);
  DOPPLER_CHECK_OK(read_rope(keys, c));
  DOPPLER_CHECK_OK(read_vocabulary(file, keys, c));
  DOPPLER_CHECK_OK(check_layers(file, keys, c));
  DOPPLER_CHECK_OK(read_end_ids(file, c));
  c.tied_head = file.find(weight_name(c, Role::kHead)) == nullptr;
  // Converters permute LLaMA's q and k so that pairs are neighbours.
  c.rope_interleaved = c.family == Family::kLlama || c.family == Family::kMixtral;
  DOPPLER_CHECK_OK(read_attention(keys, c));
  DOPPLER_CHECK_OK(read_window(file, keys, c));
  DOPPLER_CHECK_OK(read_pooling(keys, c));
  return c;
}

}  // namespace doppler::model
