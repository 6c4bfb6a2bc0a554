#include "model/names.h"

#include <fmt/format.h>

#include <string_view>

namespace doppler::model {
namespace {

std::string_view gguf_stem(Role role) {
  switch (role) {
    case Role::kEmbedding:
      return "token_embd";
    case Role::kFinalNorm:
      return "output_norm";
    case Role::kHead:
      return "output";
    case Role::kRopeFactors:
      return "rope_freqs";
    case Role::kAttnNorm:
      return "attn_norm";
    case Role::kQ:
      return "attn_q";
    case Role::kK:
      return "attn_k";
    case Role::kV:
      return "attn_v";
    case Role::kQNorm:
      return "attn_q_norm";
    case Role::kKNorm:
      return "attn_k_norm";
    case Role::kAttnOut:
      return "attn_output";
    case Role::kPostAttnNorm:
      return "post_attention_norm";
    case Role::kFfnNorm:
      return "ffn_norm";
    case Role::kGate:
      return "ffn_gate";
    case Role::kUp:
      return "ffn_up";
    case Role::kDown:
      return "ffn_down";
    case Role::kPostFfnNorm:
      return "post_ffw_norm";
  }
  return "";
}

std::string_view hugging_face_stem(Role role, bool sandwich) {
  switch (role) {
    case Role::kEmbedding:
      return "model.embed_tokens";
    case Role::kFinalNorm:
      return "model.norm";
    case Role::kHead:
      return "lm_head";
    case Role::kRopeFactors:
      return "rope_freqs";
    case Role::kAttnNorm:
      return "input_layernorm";
    case Role::kQ:
      return "self_attn.q_proj";
    case Role::kK:
      return "self_attn.k_proj";
    case Role::kV:
      return "self_attn.v_proj";
    case Role::kQNorm:
      return "self_attn.q_norm";
    case Role::kKNorm:
      return "self_attn.k_norm";
    case Role::kAttnOut:
      return "self_attn.o_proj";
    case Role::kPostAttnNorm:
      return "post_attention_layernorm";
    case Role::kFfnNorm:
      return sandwich ? "pre_feedforward_layernorm" : "post_attention_layernorm";
    case Role::kGate:
      return "mlp.gate_proj";
    case Role::kUp:
      return "mlp.up_proj";
    case Role::kDown:
      return "mlp.down_proj";
    case Role::kPostFfnNorm:
      return "post_feedforward_layernorm";
  }
  return "";
}

bool in_layer(Role role) { return role >= Role::kAttnNorm; }

}  // namespace

std::string weight_name(const ModelConfig& config, Role role, uint32_t layer) {
  if (config.names == NameStyle::kGguf) {
    const std::string_view stem = gguf_stem(role);
    return in_layer(role) ? fmt::format("{}blk.{}.{}.weight", config.name_prefix, layer, stem)
                          : fmt::format("{}{}.weight", config.name_prefix, stem);
  }
  const std::string_view stem = hugging_face_stem(role, config.sandwich_norms);
  return in_layer(role) ? fmt::format("{}model.layers.{}.{}.weight", config.name_prefix, layer, stem)
                        : fmt::format("{}{}.weight", config.name_prefix, stem);
}

std::string bias_name(const std::string& weight) {
  constexpr std::string_view suffix = ".weight";
  return weight.substr(0, weight.size() - suffix.size()) + ".bias";
}

}  // namespace doppler::model
