#include "formats/rdrr/manifest_check.h"

namespace doppler::rdrr {
namespace {

constexpr uint64_t kMaxCount = 0x7fffffff;

void parse_attention(Fields fields, Attention& a) {
  a.query_pre_attn_scalar = fields.optional_number("queryPreAttnScalar");
  a.logit_softcapping = fields.optional_number("attnLogitSoftcapping");
  a.sliding_window = fields.optional_uint("slidingWindow", 0, kMaxCount);
  a.query_key_norm = fields.boolean("queryKeyNorm", false);
  a.causal = fields.boolean("causal", true);
  a.bias = fields.boolean("attentionBias", false);
  a.output_gate = fields.boolean("attentionOutputGate", false);
  a.value_norm = fields.boolean("valueNorm", false);
  a.extra = fields.rest();
}

void parse_normalization(Fields fields, Normalization& n) {
  n.rms_eps = fields.optional_number("rmsNormEps");
  n.weight_offset = fields.optional_bool("rmsNormWeightOffset");
  n.post_attention = fields.boolean("postAttentionNorm", false);
  n.pre_feedforward = fields.boolean("preFeedforwardNorm", false);
  n.post_feedforward = fields.boolean("postFeedforwardNorm", false);
  n.extra = fields.rest();
}

void parse_ffn(Fields fields, FeedForward& f) {
  f.activation = fields.optional_string("activation").value_or("");
  f.gated = fields.boolean("gatedActivation", true);
  f.double_wide = fields.boolean("useDoubleWideMlp", false);
  f.swiglu_limit = fields.optional_number("swigluLimit");
  f.branch_mode = fields.optional_string("branchMode").value_or("auto");
  f.extra = fields.rest();
}

void parse_rope(Fields fields, Rope& r) {
  r.theta = fields.optional_number("ropeTheta");
  r.local_theta = fields.optional_number("ropeLocalTheta");
  r.partial_rotary_factor = fields.optional_number("partialRotaryFactor");
  r.scaling_type = fields.optional_string("ropeScalingType");
  r.scaling_factor = fields.optional_number("ropeScalingFactor").value_or(1);
  r.interleaved = fields.boolean("ropeInterleaved", false);
  r.mrope_interleaved = fields.boolean("mropeInterleaved", false);
  r.extra = fields.rest();
}

void parse_output(Fields fields, Output& o) {
  o.tied = fields.boolean("tieWordEmbeddings", false);
  o.scale_embeddings = fields.boolean("scaleEmbeddings", false);
  o.embedding_transpose = fields.boolean("embeddingTranspose", false);
  o.final_softcapping = fields.optional_number("finalLogitSoftcapping");
  o.embedding_scale = fields.optional_number("embeddingScale");
  o.logit_input_scale = fields.optional_number("logitInputScale").value_or(1);
  o.embedding_vocab = fields.optional_uint("embeddingVocabSize", 1, kMaxCount);
  o.extra = fields.rest();
}

void parse_layer_pattern(Fields fields, LayerPattern& p) {
  p.type = fields.optional_string("type").value_or("uniform");
  p.global_pattern = fields.optional_string("globalPattern");
  p.period = fields.optional_uint("period", 1, kMaxCount);
  p.offset = fields.optional_uint("offset", 0, kMaxCount);
  p.layer_types = fields.strings("layerTypes");
  p.residual_branch_scale = fields.optional_number("residualBranchScale").value_or(1);
  p.extra = fields.rest();
}

}  // namespace

void parse_inference(Json block, Inference& inference, const std::string& where, Result<void>& status) {
  Fields fields(block, where + ", inference", status);
  const auto section = [&](std::string_view key) {
    return Fields(fields.object(key), fmt::format("{}, inference.{}", where, key), status);
  };
  inference.schema = fields.optional_string("schema");
  parse_attention(section("attention"), inference.attention);
  parse_normalization(section("normalization"), inference.normalization);
  parse_ffn(section("ffn"), inference.ffn);
  parse_rope(section("rope"), inference.rope);
  parse_output(section("output"), inference.output);
  parse_layer_pattern(section("layerPattern"), inference.layer_pattern);
  Fields chat = section("chatTemplate");
  inference.chat_template.type = chat.optional_string("type");
  inference.chat_template.enabled = chat.boolean("enabled", inference.chat_template.type.has_value());
  inference.chat_template.extra = chat.rest();
  inference.extra = fields.rest();
}

}  // namespace doppler::rdrr
