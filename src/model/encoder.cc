// BERT: bidirectional attention, norms after each residual sum, learned positions; one pooled vector a text.
#include "model/families.h"

namespace doppler::model {
namespace {

graph::View layer(GraphBuilder& b, const ModelConfig& c, graph::View x) {
  const uint32_t width = c.heads * c.head_dim;
  const graph::View qkv = b.linear(x, {{Role::kQ, width}, {Role::kK, width}, {Role::kV, width}}, "qkv");
  const graph::View seen = b.attention(b.slice(qkv, 0, width), b.slice(qkv, width, width),
                                       b.slice(qkv, 2 * width, width), 0, "attn_heads");
  const graph::View attended = b.linear(seen, {{Role::kAttnOut, c.hidden}}, "attn_out");
  x = b.norm(b.add(x, attended, "attn_residual"), Role::kPostAttnNorm, "post_attn_norm");
  const graph::View act = b.act(b.linear(x, {{Role::kUp, c.ffn}}, "ffn_up"), "ffn_act");
  const graph::View fed = b.linear(act, {{Role::kDown, c.hidden}}, "ffn_out");
  return b.norm(b.add(x, fed, "ffn_residual"), Role::kPostFfnNorm, "layer_out");
}

}  // namespace

void build_encoder(GraphBuilder& b, const ModelConfig& c) {
  graph::View x = b.norm(b.add_token_type(b.add_positions(b.embed())), Role::kEmbeddingNorm, "embed_norm");
  for (uint32_t i = 0; i < c.layers; ++i) {
    b.begin_layer(static_cast<int32_t>(i));
    x = layer(b, c, x);
  }
  b.begin_layer(-1);
  b.pool(x);
}

}  // namespace doppler::model
