// Gemma 3: scaled embeddings, norms before and after attention and feed-forward, per-head q/k norms, five
// sliding-window layers (their own RoPE base, unscaled) to one global layer, GELU-gated feed-forward.
#include "model/families.h"

namespace doppler::model {
namespace {

struct RopeTables {
  uint32_t global, local;
};

graph::View layer(GraphBuilder& b, const ModelConfig& c, uint32_t index, RopeTables ropes, graph::View x) {
  const uint32_t q_width = c.heads * c.head_dim, kv_width = c.kv_heads * c.head_dim;
  const bool sliding = !c.sliding.empty() && c.sliding[index];
  const uint32_t rope = sliding ? ropes.local : ropes.global;
  b.begin_layer(static_cast<int32_t>(index));

  const graph::View h = b.rms_norm(x, Role::kAttnNorm, "attn_norm");
  const graph::View qkv =
      b.linear(h, {{Role::kQ, q_width}, {Role::kK, kv_width}, {Role::kV, kv_width}}, "qkv");
  const graph::View q = b.slice(qkv, 0, q_width), k = b.slice(qkv, q_width, kv_width);
  const graph::View v = b.slice(qkv, q_width + kv_width, kv_width);
  b.head_norm(q, Role::kQNorm, "q_norm");
  b.head_norm(k, Role::kKNorm, "k_norm");
  b.rope(q, rope, "q_rope");
  b.rope(k, rope, "k_rope");
  const graph::View heads = b.attention(q, k, v, sliding ? c.window : 0, "attn_heads");
  const graph::View attended = b.linear(heads, {{Role::kAttnOut, c.hidden}}, "attn_out");
  x = b.add(x, b.rms_norm(attended, Role::kPostAttnNorm, "post_attn_norm"), "attn_residual");

  const graph::View normed = b.rms_norm(x, Role::kFfnNorm, "ffn_norm");
  const graph::View act =
      b.gated_act(b.linear(normed, {{Role::kGate, c.ffn}, {Role::kUp, c.ffn}}, "gate_up"), "ffn_act");
  const graph::View fed = b.linear(act, {{Role::kDown, c.hidden}}, "ffn_out");
  return b.add(x, b.rms_norm(fed, Role::kPostFfnNorm, "post_ffn_norm"), "layer_out");
}

}  // namespace

void build_gemma3(GraphBuilder& b, const ModelConfig& c) {
  const RopeTables ropes{b.rope_table(c.rope_base, /*scaled=*/true),
                         b.rope_table(c.rope_base_local, /*scaled=*/false)};
  graph::View x = b.embed();
  for (uint32_t i = 0; i < c.layers; ++i) x = layer(b, c, i, ropes, x);
  b.begin_layer(-1);
  b.head(b.rms_norm(b.select_rows(x), Role::kFinalNorm, "final_norm"));
}

}  // namespace doppler::model
