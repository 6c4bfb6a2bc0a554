// Decoders: LLaMA, Mistral, Mixtral, Qwen, Gemma, Phi-3, gpt-oss, GPT-2. They differ in what the config says,
// not in the order of their steps.
#include "model/families.h"

namespace doppler::model {
namespace {

struct RopeTables {
  uint32_t global = 0, local = 0;
};

struct Heads {
  graph::View q, k, v;
};

Heads project(GraphBuilder& b, const ModelConfig& c, graph::View x) {
  const uint32_t q = c.heads * c.head_dim, kv = c.kv_heads * c.head_dim;
  const graph::View qkv = b.has(Role::kQkv)
                              ? b.linear(x, {{Role::kQkv, q + 2 * kv}}, "qkv")
                              : b.linear(x, {{Role::kQ, q}, {Role::kK, kv}, {Role::kV, kv}}, "qkv");
  return {b.slice(qkv, 0, q), b.slice(qkv, q, kv), b.slice(qkv, q + kv, kv)};
}

graph::View attention(GraphBuilder& b, const ModelConfig& c, uint32_t index, RopeTables ropes,
                      graph::View x) {
  const bool sliding = !c.sliding.empty() && c.sliding[index];
  const Heads heads = project(b, c, b.norm(x, Role::kAttnNorm, "attn_norm"));
  if (c.qk_norm) {
    b.head_norm(heads.q, Role::kQNorm, "q_norm");
    b.head_norm(heads.k, Role::kKNorm, "k_norm");
  }
  if (!c.learned_positions) {
    const uint32_t rope = sliding && c.local_rope ? ropes.local : ropes.global;
    b.rope(heads.q, rope, "q_rope");
    b.rope(heads.k, rope, "k_rope");
  }
  const graph::View seen = b.attention(heads.q, heads.k, heads.v, sliding ? c.window : 0, "attn_heads");
  const graph::View out = b.linear(seen, {{Role::kAttnOut, c.hidden}}, "attn_out");
  return c.sandwich_norms ? b.norm(out, Role::kPostAttnNorm, "post_attn_norm") : out;
}

graph::View feed_forward(GraphBuilder& b, const ModelConfig& c, uint32_t index, graph::View x) {
  const graph::View normed = b.norm(x, Role::kFfnNorm, "ffn_norm");
  if (c.experts > 0 && (c.dense.empty() || !c.dense[index])) return b.experts(normed);
  graph::View act;
  if (!c.gated_ffn) {
    act = b.act(b.linear(normed, {{Role::kUp, c.ffn}}, "ffn_up"), "ffn_act");
  } else {
    // Phi-3 has gate and up in one weight, whose GGUF name is that of up alone.
    const bool one = !b.has(Role::kGate) && b.has(Role::kGateUp);
    const graph::View gate_up = one ? b.linear(normed, {{Role::kGateUp, 2 * c.ffn}}, "gate_up")
                                    : b.linear(normed, {{Role::kGate, c.ffn}, {Role::kUp, c.ffn}}, "gate_up");
    act = b.gated_act(gate_up, "ffn_act");
  }
  const graph::View out = b.linear(act, {{Role::kDown, c.hidden}}, "ffn_out");
  return c.sandwich_norms ? b.norm(out, Role::kPostFfnNorm, "post_ffn_norm") : out;
}

}  // namespace

void build_decoder(GraphBuilder& b, const ModelConfig& c) {
  RopeTables ropes;
  if (!c.learned_positions) ropes.global = b.rope_table(c.rope_base, /*scaled=*/true);
  if (c.local_rope) ropes.local = b.rope_table(c.rope_base_local, /*scaled=*/false);
  graph::View x = b.embed();
  if (c.learned_positions) x = b.add_positions(x);
  for (uint32_t i = 0; i < c.layers; ++i) {
    b.begin_layer(static_cast<int32_t>(i));
    x = b.add(x, attention(b, c, i, ropes, x), "attn_residual");
    x = b.add(x, feed_forward(b, c, i, x), "layer_out");
  }
  b.begin_layer(-1);
  if (c.pooling != Pooling::kNone)
    b.pool(b.norm(x, Role::kFinalNorm, "final_norm"));
  else
    b.head(b.norm(b.select_rows(x), Role::kFinalNorm, "final_norm"));
}

}  // namespace doppler::model
