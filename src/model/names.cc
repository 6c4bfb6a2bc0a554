#include "model/names.h"

#include <fmt/format.h>

#include <string_view>

namespace doppler::model {
namespace {

struct RoleName {
  Role role;
  const char *gguf, *hugging_face;
};

// What most families call their weights, after the prefix.
constexpr RoleName kNames[] = {
    {Role::kEmbedding, "token_embd.weight", "embed_tokens.weight"},
    {Role::kPositions, "position_embd.weight", "embed_positions.weight"},
    {Role::kTokenTypes, "token_types.weight", "token_type_embeddings.weight"},
    {Role::kEmbeddingNorm, "token_embd_norm.weight", "embedding_norm.weight"},
    {Role::kFinalNorm, "output_norm.weight", "norm.weight"},
    {Role::kHead, "output.weight", "lm_head.weight"},
    {Role::kRopeFactors, "rope_freqs.weight", "rope_freqs.weight"},
    {Role::kRopeShort, "rope_factors_short.weight", "rope_factors_short.weight"},
    {Role::kRopeLong, "rope_factors_long.weight", "rope_factors_long.weight"},
    {Role::kAttnNorm, "attn_norm.weight", "input_layernorm.weight"},
    {Role::kQ, "attn_q.weight", "self_attn.q_proj.weight"},
    {Role::kK, "attn_k.weight", "self_attn.k_proj.weight"},
    {Role::kV, "attn_v.weight", "self_attn.v_proj.weight"},
    {Role::kQkv, "attn_qkv.weight", "self_attn.qkv_proj.weight"},
    {Role::kQNorm, "attn_q_norm.weight", "self_attn.q_norm.weight"},
    {Role::kKNorm, "attn_k_norm.weight", "self_attn.k_norm.weight"},
    {Role::kSinks, "attn_sinks.weight", "self_attn.sinks"},
    {Role::kAttnOut, "attn_output.weight", "self_attn.o_proj.weight"},
    {Role::kPostAttnNorm, "post_attention_norm.weight", "post_attention_layernorm.weight"},
    {Role::kFfnNorm, "ffn_norm.weight", "post_attention_layernorm.weight"},
    {Role::kGate, "ffn_gate.weight", "mlp.gate_proj.weight"},
    {Role::kUp, "ffn_up.weight", "mlp.up_proj.weight"},
    {Role::kGateUp, "ffn_up.weight", "mlp.gate_up_proj.weight"},  // Phi-3 in GGUF: up is twice as tall
    {Role::kDown, "ffn_down.weight", "mlp.down_proj.weight"},
    {Role::kPostFfnNorm, "post_ffw_norm.weight", "post_feedforward_layernorm.weight"},
    {Role::kRouter, "ffn_gate_inp.weight", "mlp.gate.weight"},
    {Role::kExpertGate, "ffn_gate_exps.weight", "mlp.experts.{}.gate_proj.weight"},
    {Role::kExpertUp, "ffn_up_exps.weight", "mlp.experts.{}.up_proj.weight"},
    {Role::kExpertGateUp, "ffn_gate_up_exps.weight", "mlp.experts.gate_up_proj"},
    {Role::kExpertDown, "ffn_down_exps.weight", "mlp.experts.{}.down_proj.weight"},
};

struct FamilyName {
  Family family;
  RoleName name;  // nullptr: as above
};

constexpr FamilyName kFamilyNames[] = {
    {Family::kGpt2, {Role::kEmbedding, nullptr, "wte.weight"}},
    {Family::kGpt2, {Role::kPositions, nullptr, "wpe.weight"}},
    {Family::kGpt2, {Role::kFinalNorm, nullptr, "ln_f.weight"}},
    {Family::kGpt2, {Role::kAttnNorm, nullptr, "ln_1.weight"}},
    {Family::kGpt2, {Role::kQkv, nullptr, "attn.c_attn.weight"}},
    {Family::kGpt2, {Role::kAttnOut, nullptr, "attn.c_proj.weight"}},
    {Family::kGpt2, {Role::kFfnNorm, nullptr, "ln_2.weight"}},
    {Family::kGpt2, {Role::kUp, nullptr, "mlp.c_fc.weight"}},
    {Family::kGpt2, {Role::kDown, nullptr, "mlp.c_proj.weight"}},
    {Family::kMixtral, {Role::kRouter, nullptr, "block_sparse_moe.gate.weight"}},
    {Family::kMixtral, {Role::kExpertGate, nullptr, "block_sparse_moe.experts.{}.w1.weight"}},
    {Family::kMixtral, {Role::kExpertUp, nullptr, "block_sparse_moe.experts.{}.w3.weight"}},
    {Family::kMixtral, {Role::kExpertDown, nullptr, "block_sparse_moe.experts.{}.w2.weight"}},
    {Family::kGptOss, {Role::kFfnNorm, "post_attention_norm.weight", nullptr}},
    {Family::kGptOss, {Role::kRouter, nullptr, "mlp.router.weight"}},
    {Family::kGptOss, {Role::kExpertDown, nullptr, "mlp.experts.down_proj"}},
    {Family::kBert, {Role::kEmbedding, nullptr, "embeddings.word_embeddings.weight"}},
    {Family::kBert, {Role::kPositions, nullptr, "embeddings.position_embeddings.weight"}},
    {Family::kBert, {Role::kTokenTypes, nullptr, "embeddings.token_type_embeddings.weight"}},
    {Family::kBert, {Role::kEmbeddingNorm, nullptr, "embeddings.LayerNorm.weight"}},
    {Family::kBert, {Role::kQ, nullptr, "attention.self.query.weight"}},
    {Family::kBert, {Role::kK, nullptr, "attention.self.key.weight"}},
    {Family::kBert, {Role::kV, nullptr, "attention.self.value.weight"}},
    {Family::kBert, {Role::kAttnOut, nullptr, "attention.output.dense.weight"}},
    {Family::kBert, {Role::kPostAttnNorm, "attn_output_norm.weight", "attention.output.LayerNorm.weight"}},
    {Family::kBert, {Role::kUp, nullptr, "intermediate.dense.weight"}},
    {Family::kBert, {Role::kDown, nullptr, "output.dense.weight"}},
    {Family::kBert, {Role::kPostFfnNorm, "layer_output_norm.weight", "output.LayerNorm.weight"}},
};

bool in_layer(Role role) { return role >= Role::kAttnNorm; }

std::string_view stem(const ModelConfig& config, Role role) {
  const bool gguf = config.names == NameStyle::kGguf;
  if (!gguf && role == Role::kFfnNorm && config.sandwich_norms) return "pre_feedforward_layernorm.weight";
  for (const FamilyName& entry : kFamilyNames) {
    if (entry.family != config.family || entry.name.role != role) continue;
    if (const char* name = gguf ? entry.name.gguf : entry.name.hugging_face) return name;
  }
  for (const RoleName& entry : kNames)
    if (entry.role == role) return gguf ? entry.gguf : entry.hugging_face;
  return "";
}

std::string full_name(const ModelConfig& config, Role role, uint32_t layer, std::string_view stem) {
  const std::string& prefix = config.name_prefix;
  if (config.names == NameStyle::kGguf)
    return in_layer(role) ? fmt::format("{}blk.{}.{}", prefix, layer, stem)
                          : fmt::format("{}{}", prefix, stem);
  if (role == Role::kHead) return fmt::format("{}{}", prefix, stem);
  if (!in_layer(role)) return fmt::format("{}{}{}", prefix, config.body, stem);
  const std::string_view layers = config.family == Family::kGpt2   ? "h"
                                  : config.family == Family::kBert ? "encoder.layer"
                                                                   : "layers";
  return fmt::format("{}{}{}.{}.{}", prefix, config.body, layers, layer, stem);
}

}  // namespace

std::string weight_name(const ModelConfig& config, Role role, uint32_t layer) {
  return full_name(config, role, layer, stem(config, role));
}

std::vector<std::string> other_names(const ModelConfig& config, Role role, uint32_t layer) {
  std::vector<std::string_view> stems;
  const bool gguf = config.names == NameStyle::kGguf;
  if (gguf) {  // Mixtral files before 2024-04 have one tensor an expert
    if (role == Role::kExpertGate) stems = {"ffn_gate.{}.weight"};
    if (role == Role::kExpertUp) stems = {"ffn_up.{}.weight"};
    if (role == Role::kExpertDown) stems = {"ffn_down.{}.weight"};
    if (role == Role::kFfnNorm && config.family == Family::kGptOss) stems = {"ffn_norm.weight"};
  } else {
    if (role == Role::kExpertDown) stems = {"mlp.experts.down_proj"};
    if (role == Role::kRouter) stems = {"mlp.gate.weight"};
  }
  std::vector<std::string> names;
  for (const std::string_view other : stems) names.push_back(full_name(config, role, layer, other));
  return names;
}

std::string bias_name(const std::string& weight) {
  constexpr std::string_view suffix = ".weight";
  if (!weight.ends_with(suffix)) return weight + "_bias";
  return weight.substr(0, weight.size() - suffix.size()) + ".bias";
}

bool find_prefixes(ModelConfig& config, const TensorSource& source) {
  struct Spelling {
    const char *prefix, *body;
  };
  // Text models; multimodal ones of before and after transformers 4.52; models saved without their head.
  constexpr Spelling kDecoder[] = {
      {"", "model."}, {"language_model.", "model."}, {"", "model.language_model."}, {"", ""}};
  constexpr Spelling kGpt2[] = {{"", "transformer."}, {"", ""}};
  constexpr Spelling kBert[] = {{"", ""}, {"", "bert."}};
  std::span<const Spelling> spellings = kDecoder;
  if (config.family == Family::kGpt2) spellings = kGpt2;
  if (config.family == Family::kBert) spellings = kBert;
  for (const Spelling& spelling : spellings) {
    config.name_prefix = spelling.prefix;
    config.body = spelling.body;
    if (source.find(weight_name(config, Role::kEmbedding))) return true;
  }
  return false;
}

}  // namespace doppler::model
