#include <map>
#include <nlohmann/json.hpp>

#include "formats/rdrr/manifest.h"

namespace doppler::rdrr {
namespace {

using Json_ = nlohmann::ordered_json;

template <class T>
Json_ or_null(const std::optional<T>& value) {
  return value ? Json_(*value) : Json_(nullptr);
}

/// Whole numbers are written without a fraction: 64, not 64.0.
Json_ number(double value) {
  if (value >= -9e15 && value <= 9e15 && value == static_cast<double>(static_cast<int64_t>(value)))
    return static_cast<int64_t>(value);
  return value;
}

Json_ number_or_null(const std::optional<double>& value) { return value ? number(*value) : Json_(nullptr); }

/// Adds the members kept as text, and those of `defaults` that are not among them, in key order: a manifest
/// that is read and written again comes out the same.
void add_raw(Json_& object, const RawMembers& members, std::map<std::string, Json_> defaults = {}) {
  for (const auto& [key, text] : members) defaults[key] = Json_::parse(text, nullptr, false);
  for (auto& [key, value] : defaults) object[key] = std::move(value);
}

Json_ attention_json(const Attention& a) {
  Json_ out = {{"queryPreAttnScalar", number_or_null(a.query_pre_attn_scalar)},
               {"attnLogitSoftcapping", number_or_null(a.logit_softcapping)},
               {"slidingWindow", or_null(a.sliding_window)},
               {"queryKeyNorm", a.query_key_norm},
               {"causal", a.causal},
               {"attentionBias", a.bias},
               {"attentionOutputGate", a.output_gate},
               {"valueNorm", a.value_norm}};
  add_raw(out, a.extra);
  return out;
}

Json_ normalization_json(const Normalization& n) {
  Json_ out = {{"rmsNormEps", number_or_null(n.rms_eps)},
               {"rmsNormWeightOffset", or_null(n.weight_offset)},
               {"postAttentionNorm", n.post_attention},
               {"preFeedforwardNorm", n.pre_feedforward},
               {"postFeedforwardNorm", n.post_feedforward}};
  add_raw(out, n.extra);
  return out;
}

Json_ ffn_json(const FeedForward& f) {
  Json_ out = {{"activation", f.activation},
               {"gatedActivation", f.gated},
               {"branchMode", f.branch_mode},
               {"useDoubleWideMlp", f.double_wide},
               {"swigluLimit", number_or_null(f.swiglu_limit)}};
  add_raw(out, f.extra);
  return out;
}

Json_ rope_json(const Rope& r) {
  Json_ out = {{"ropeTheta", number_or_null(r.theta)},
               {"ropeLocalTheta", number_or_null(r.local_theta)},
               {"ropeInterleaved", r.interleaved},
               {"mropeInterleaved", r.mrope_interleaved},
               {"partialRotaryFactor", number_or_null(r.partial_rotary_factor)},
               {"ropeScalingType", or_null(r.scaling_type)},
               {"ropeScalingFactor", number(r.scaling_factor)}};
  // Keys a current reader insists on, even if only with null.
  add_raw(out, r.extra,
          {{"ropeLocalScalingFactor", 1},
           {"mropeSection", nullptr},
           {"ropeLocalPartialRotaryFactor", nullptr},
           {"ropeFrequencyBaseDim", nullptr},
           {"ropeLocalFrequencyBaseDim", nullptr},
           {"ropeLocalScalingType", nullptr},
           {"yarnBetaFast", nullptr},
           {"yarnBetaSlow", nullptr},
           {"yarnOriginalMaxPos", nullptr},
           {"ropeLocalYarnBetaFast", nullptr},
           {"ropeLocalYarnBetaSlow", nullptr},
           {"ropeLocalYarnOriginalMaxPos", nullptr},
           {"longropeShortFactor", nullptr},
           {"longropeLongFactor", nullptr},
           {"longropeOriginalMaxPos", nullptr}});
  return out;
}

Json_ output_json(const Output& o) {
  Json_ out = {{"tieWordEmbeddings", o.tied},
               {"scaleEmbeddings", o.scale_embeddings},
               {"embeddingScale", number_or_null(o.embedding_scale)},
               {"logitInputScale", number(o.logit_input_scale)},
               {"embeddingTranspose", o.embedding_transpose},
               {"embeddingVocabSize", or_null(o.embedding_vocab)},
               {"finalLogitSoftcapping", number_or_null(o.final_softcapping)}};
  add_raw(out, o.extra, {{"embeddingPostprocessor", nullptr}});
  return out;
}

Json_ layer_pattern_json(const LayerPattern& p) {
  Json_ out = {{"type", p.type},
               {"globalPattern", or_null(p.global_pattern)},
               {"period", or_null(p.period)},
               {"offset", or_null(p.offset)},
               {"layerTypes", p.layer_types.empty() ? Json_(nullptr) : Json_(p.layer_types)},
               {"residualBranchScale", number(p.residual_branch_scale)}};
  add_raw(out, p.extra);
  return out;
}

Json_ inference_json(const Inference& inference) {
  Json_ out = {{"schema", or_null(inference.schema)},
               {"attention", attention_json(inference.attention)},
               {"normalization", normalization_json(inference.normalization)},
               {"ffn", ffn_json(inference.ffn)},
               {"rope", rope_json(inference.rope)},
               {"output", output_json(inference.output)},
               {"layerPattern", layer_pattern_json(inference.layer_pattern)}};
  Json_ chat = {{"type", or_null(inference.chat_template.type)},
                {"enabled", inference.chat_template.enabled}};
  add_raw(chat, inference.chat_template.extra);
  out["chatTemplate"] = std::move(chat);
  // Early readers look for these; current ones ignore them.
  add_raw(out, inference.extra,
          {{"pipeline", nullptr},
           {"presetId", nullptr},
           {"defaultKernelPath", nullptr},
           {"sessionDefaults", nullptr}});
  return out;
}

Json_ architecture_json(const Architecture& a) {
  Json_ out = {
      {"numLayers", a.layers},        {"hiddenSize", a.hidden},         {"intermediateSize", a.intermediate},
      {"numAttentionHeads", a.heads}, {"numKeyValueHeads", a.kv_heads}, {"headDim", a.head_dim},
      {"vocabSize", a.vocab},         {"maxSeqLen", a.max_seq_len}};
  add_raw(out, a.extra);
  return out;
}

Json_ tensor_json(const Tensor& tensor) {
  // "shard" and "offset" also for a split tensor: early readers of an external map insist on them.
  Json_ out = {{"shard", tensor.spans.front().shard},
               {"offset", tensor.spans.front().offset},
               {"size", tensor.size},
               {"shape", tensor.shape},
               {"dtype", tensor.dtype},
               {"role", tensor.role}};
  if (tensor.spans.size() > 1) {
    Json_ spans = Json_::array();
    for (const Span& span : tensor.spans)
      spans.push_back({{"shardIndex", span.shard}, {"offset", span.offset}, {"size", span.size}});
    out["spans"] = std::move(spans);
  }
  if (!tensor.group.empty()) out["group"] = tensor.group;
  if (!tensor.layout.empty()) out["layout"] = tensor.layout;
  if (!tensor.original_shape.empty()) out["originalShape"] = tensor.original_shape;
  add_raw(out, tensor.extra);
  return out;
}

Json_ group_json(const Group& group) {
  Json_ out = {{"type", group.type},
               {"version", group.version},
               {"shards", group.shards},
               {"tensors", group.tensors},
               {"hash", group.hash}};
  if (group.layer_index) out["layerIndex"] = *group.layer_index;
  if (group.expert_index) out["expertIndex"] = *group.expert_index;
  add_raw(out, group.extra);
  return out;
}

Json_ tokenizer_json(const TokenizerRef& t) {
  Json_ out = {{"type", t.type}};
  if (!t.file.empty()) out[t.type == "sentencepiece" ? "sentencepieceModel" : "file"] = t.file;
  if (t.vocab_size) out["vocabSize"] = *t.vocab_size;
  if (t.bos_id) out["bosTokenId"] = *t.bos_id;
  if (t.eos_id) out["eosTokenId"] = *t.eos_id;
  if (t.pad_id) out["padTokenId"] = *t.pad_id;
  if (t.unk_id) out["unkTokenId"] = *t.unk_id;
  if (t.add_bos) out["addBosToken"] = *t.add_bos;
  if (t.add_eos) out["addEosToken"] = *t.add_eos;
  add_raw(out, t.extra);
  return out;
}

Json_ eos_json(const std::vector<uint64_t>& ids) {
  if (ids.empty()) return nullptr;
  if (ids.size() == 1) return ids.front();
  return ids;
}

}  // namespace

std::string to_json(const Manifest& manifest) {
  Json_ out = {{"version", number(manifest.version)},
               {"modelId", manifest.model_id},
               {"modelType", manifest.model_type},
               {"quantization", manifest.quantization}};
  if (manifest.architecture) out["architecture"] = architecture_json(*manifest.architecture);
  if (manifest.moe) {
    out["moeConfig"] = {{"numExperts", manifest.moe->experts},
                        {"numExpertsPerToken", manifest.moe->experts_per_token},
                        {"expertFormat", manifest.moe->expert_format}};
    add_raw(out["moeConfig"], manifest.moe->extra);
  } else {
    out["moeConfig"] = nullptr;
  }
  out["inference"] = inference_json(manifest.inference);
  out["eos_token_id"] = eos_json(manifest.eos_ids);
  if (!manifest.tokenizer.type.empty()) out["tokenizer"] = tokenizer_json(manifest.tokenizer);
  out["hashAlgorithm"] = hash_name(manifest.hash);
  out["totalSize"] = manifest.total_size;
  Json_ shards = Json_::array();
  for (size_t i = 0; i < manifest.shards.size(); ++i) {
    const Shard& shard = manifest.shards[i];
    shards.push_back({{"index", i},
                      {"filename", shard.filename},
                      {"size", shard.size},
                      {"hash", shard.hash},
                      {"offset", shard.offset}});
  }
  out["shards"] = std::move(shards);
  if (!manifest.side_files.empty()) {
    Json_ files = Json_::array();
    for (const SideFile& file : manifest.side_files)
      files.push_back({{"filename", file.filename}, {"size", file.size}, {"hash", file.hash}});
    out["sideFiles"] = std::move(files);
  }
  add_raw(out, manifest.extra);
  if (!manifest.groups.empty()) {
    Json_ groups = Json_::object();
    for (const Group& group : manifest.groups) groups[group.id] = group_json(group);
    out["groups"] = std::move(groups);
  }
  if (manifest.tensors_file.empty()) {
    Json_ tensors = Json_::object();
    for (const Tensor& tensor : manifest.tensors) tensors[tensor.name] = tensor_json(tensor);
    out["tensors"] = std::move(tensors);
  } else {
    out["tensorsFile"] = manifest.tensors_file;
    out["tensorCount"] = manifest.tensors.size();
  }
  if (manifest.merkle) {
    Json_ roots = Json_::object();
    for (const auto& [name, root] : manifest.merkle->roots) roots[name] = root;
    out["integrityExtensions"] = {
        {"contractVersion", 1},
        {"blockMerkle", {{"blockSize", manifest.merkle->block_size}, {"roots", std::move(roots)}}}};
  }
  return out.dump(2, ' ', false, Json_::error_handler_t::replace) + "\n";
}

}  // namespace doppler::rdrr
