// ModelConfig from GGUF metadata. Keys are those of the GGUF specification (docs/gguf.md of ggml); what files
// of a family leave out is filled by that family's rule, named where it is applied.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "base/text.h"
#include "model/config.h"
#include "model/gguf_keys.h"
#include "model/names.h"

namespace doppler::model {
namespace {

// Beyond any published model by a wide margin; what bounds a hostile file's memory are its tensors' shapes,
// which must match these numbers.
constexpr uint64_t kMaxLayers = 1024;
constexpr uint64_t kMaxWidth = 1u << 20;
constexpr uint64_t kMaxHeads = 4096;
constexpr uint64_t kMaxHeadDim = 8192;
constexpr uint64_t kMaxContext = 1u << 30;
constexpr uint64_t kMaxVocab = 1u << 24;

Result<Family> read_family(const gguf::GgufFile& file) {
  DOPPLER_TRY(const std::optional<std::string_view> name, file.get_string("general.architecture"));
  if (!name)
    return fail(ErrorCode::kBadFile, "[model] metadata key general.architecture wanted, {} has none",
                file.path());
  for (const Family family : {Family::kLlama, Family::kGemma3})
    if (*name == family_name(family)) return family;
  return fail(ErrorCode::kUnsupported, "[model] general.architecture llama or gemma3 wanted, got \"{}\"",
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
  DOPPLER_TRY(c.rms_eps, keys.number("attention.layer_norm_rms_epsilon", 0, 1));
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
  c.rope_base_local = c.rope_base;

  DOPPLER_TRY(c.rope_scaling.type, keys.text("rope.scaling.type"));
  DOPPLER_TRY(const std::optional<float> factor, keys.find_number("rope.scaling.factor", 1e-3, 1e6));
  DOPPLER_TRY(const std::optional<float> old_factor, keys.find_number("rope.scale_linear", 1e-3, 1e6));
  if (c.rope_scaling.type == "none") c.rope_scaling.type.clear();
  if (c.rope_scaling.type.empty() && old_factor) c.rope_scaling.type = "linear";  // files before 2023-11
  c.rope_scaling.factor = factor.value_or(old_factor.value_or(1.0f));
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
  while (present <= c.layers && file.find(weight_name(c, Role::kAttnNorm, static_cast<uint32_t>(present))))
    ++present;
  if (present == c.layers) return {};
  if (present > c.layers)
    return fail(ErrorCode::kBadFile, "[model] {} of at least {} wanted (the tensors hold layer {}), got {}",
                keys.key("block_count"), present, present - 1, c.layers);
  return fail(ErrorCode::kBadFile, "[model] {} of {} wanted (the layers the tensors hold), got {}",
              keys.key("block_count"), present, c.layers);
}

Result<void> read_llama(const GgufKeys& keys, ModelConfig& c) {
  DOPPLER_TRY(const std::optional<uint32_t> experts, keys.find_count("expert_count", 0, UINT32_MAX));
  if (experts.value_or(0) > 0)
    return fail(ErrorCode::kUnsupported, "[model] a model without experts wanted, {} is {}",
                keys.key("expert_count"), *experts);
  c.activation = graph::Activation::kSilu;
  c.rope_interleaved = true;  // GGUF converters permute LLaMA's q and k so that pairs are neighbours
  DOPPLER_TRY(const std::optional<uint32_t> window,
              keys.find_count("attention.sliding_window", 0, kMaxContext));
  c.window = window.value_or(0);
  if (c.window > 0) c.sliding.assign(c.layers, true);
  DOPPLER_TRY(const std::optional<float> scale, keys.find_number("attention.scale", 1e-6, 1e6));
  c.attention_scale = scale.value_or(1.0f / std::sqrt(static_cast<float>(c.head_dim)));
  return {};
}

Result<void> read_gemma3(const gguf::GgufFile& file, const GgufKeys& keys, ModelConfig& c) {
  c.activation = graph::Activation::kGeluTanh;
  c.sandwich_norms = true;
  c.qk_norm = true;
  c.norm_weight_offset = 0;  // GGUF files of Gemma hold w + 1
  c.embedding_scale = std::sqrt(static_cast<float>(c.hidden));

  // 1 / sqrt(query_pre_attn_scalar): the head size, except in the 27B (62 layers), which uses hidden / heads.
  constexpr uint32_t kLayersOf27B = 62;
  const float scalar = c.layers == kLayersOf27B ? static_cast<float>(c.hidden) / static_cast<float>(c.heads)
                                                : static_cast<float>(c.head_dim);
  DOPPLER_TRY(const std::optional<float> scale, keys.find_number("attention.scale", 1e-6, 1e6));
  c.attention_scale = scale.value_or(1.0f / std::sqrt(scalar));

  DOPPLER_TRY(const std::optional<float> attention_cap, keys.find_number("attn_logit_softcapping", 0, 1e6));
  DOPPLER_TRY(const std::optional<float> final_cap, keys.find_number("final_logit_softcapping", 0, 1e6));
  c.attention_softcap = attention_cap.value_or(0.0f);
  c.final_softcap = final_cap.value_or(0.0f);

  // Sliding layers: base 10,000 unscaled where the file says nothing; every 6th layer is global.
  DOPPLER_TRY(const std::optional<float> local_base, keys.find_number("rope.freq_base_swa", 1, 1e12));
  c.rope_base_local = local_base.value_or(10000.0f);
  DOPPLER_TRY(const std::optional<uint32_t> window,
              keys.find_count("attention.sliding_window", 0, kMaxContext));
  c.window = window.value_or(0);
  if (c.window == 0) return {};
  uint32_t period = 6;
  const gguf::Value* pattern = file.value(keys.key("attention.sliding_window_pattern"));
  if (pattern && pattern->type != gguf::ValueType::kArray) {
    DOPPLER_TRY(period, keys.count("attention.sliding_window_pattern", 1, kMaxLayers));
  }
  c.sliding.resize(c.layers);
  for (uint32_t i = 0; i < c.layers; ++i) c.sliding[i] = i % period != period - 1;
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

}  // namespace

Result<ModelConfig> config_from_gguf(const gguf::GgufFile& file) {
  ModelConfig c;
  DOPPLER_TRY(c.family, read_family(file));
  c.names = NameStyle::kGguf;
  DOPPLER_TRY(const std::optional<std::string_view> name, file.get_string("general.name"));
  c.name = std::string(name.value_or(family_name(c.family)));

  const GgufKeys keys(file, family_name(c.family));
  DOPPLER_CHECK_OK(read_sizes(keys, c));
  DOPPLER_CHECK_OK(read_rope(keys, c));
  DOPPLER_CHECK_OK(read_vocabulary(file, keys, c));
  DOPPLER_CHECK_OK(check_layers(file, keys, c));
  DOPPLER_CHECK_OK(read_end_ids(file, c));
  c.tied_head = file.find(weight_name(c, Role::kHead)) == nullptr;
  if (c.family == Family::kLlama) DOPPLER_CHECK_OK(read_llama(keys, c));
  if (c.family == Family::kGemma3) DOPPLER_CHECK_OK(read_gemma3(file, keys, c));
  return c;
}

}  // namespace doppler::model
