// LLaMA: pre-norm layers, rotary attention with grouped heads, SiLU-gated feed-forward.
#include "model/families.h"

namespace doppler::model {
namespace {

graph::View layer(GraphBuilder& b, const ModelConfig& c, uint32_t index, uint32_t rope, graph::View x) {
  const uint32_t q_width = c.heads * c.head_dim, kv_width = c.kv_heads * c.head_dim;
  const bool sliding = !c.sliding.empty() && c.sliding[index];
  b.begin_layer(static_cast<int32_t>(index));

  const graph::View h = b.rms_norm(x, Role::kAttnNorm, "attn_norm");
  const graph::View qkv =
      b.linear(h, {{Role::kQ, q_width}, {Role::kK, kv_width}, {Role::kV, kv_width}}, "qkv");
  const graph::View q = b.slice(qkv, 0, q_width), k = b.slice(qkv, q_width, kv_width);
  const graph::View v = b.slice(qkv, q_width + kv_width, kv_width);
  if (c.qk_norm) {
    b.head_norm(q, Role::kQNorm, "q_norm");
    b.head_norm(k, Role::kKNorm, "k_norm");
  }
  b.rope(q, rope, "q_rope");
  b.rope(k, rope, "k_rope");
  const graph::View heads = b.attention(q, k, v, sliding ? c.window : 0, "attn_heads");
  x = b.add(x, b.linear(heads, {{Role::kAttnOut, c.hidden}}, "attn_out"), "attn_residual");

  const graph::View normed = b.rms_norm(x, Role::kFfnNorm, "ffn_norm");
  const graph::View act =
      b.gated_act(b.linear(normed, {{Role::kGate, c.ffn}, {Role::kUp, c.ffn}}, "gate_up"), "ffn_act");
  return b.add(x, b.linear(act, {{Role::kDown, c.hidden}}, "ffn_out"), "layer_out");
}

}  // namespace

void build_llama(GraphBuilder& b, const ModelConfig& c) {
  const uint32_t rope = b.rope_table(c.rope_base, /*scaled=*/true);
  graph::View x = b.embed();
  for (uint32_t i = 0; i < c.layers; ++i) x = layer(b, c, i, rope, x);
  b.begin_layer(-1);
  b.head(b.rms_norm(b.select_rows(x), Role::kFinalNorm, "final_norm"));
}

}  // namespace doppler::model
