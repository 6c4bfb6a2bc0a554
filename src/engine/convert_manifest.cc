#include "engine/convert_manifest.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <map>

#include "formats/rdrr/writer.h"
#include "model/config_block.h"

namespace doppler::convert_detail {
namespace {

using model::ModelConfig;

// What current readers of the original insist on for text models: plain choices, nothing fused.
constexpr const char* kSession =
    R"({"kvcache":{"layout":"contiguous","kvDtype":"f16","pageSize":256,"tiering":{"mode":"off","compression":{"mode":"none"},)"
    R"("gating":{"mode":"auto"}},"quantization":{"mode":"none"}},"decodeLoop":{"batchSize":1,"disableCommandBatching":false},)"
    R"("compute":{"defaults":{"activationDtype":"f32","mathDtype":"f32","accumDtype":"f32","outputDtype":"f32"}}})";

/// scale = 1 / sqrt(scalar), computed in f32: a scalar that was whole comes back whole.
double scalar_of(float attention_scale) {
  const double scalar = 1.0 / (static_cast<double>(attention_scale) * attention_scale);
  const double whole = std::round(scalar);
  return std::abs(scalar - whole) < 1e-5 * scalar ? whole : scalar;
}

std::optional<double> unless_zero(float value) {
  return value == 0 ? std::nullopt : std::optional<double>(value);
}

/// The shortest way to say which layers slide.
rdrr::LayerPattern layer_pattern(const model::ModelConfig& config) {
  rdrr::LayerPattern pattern;
  const std::vector<bool>& sliding = config.sliding;
  const auto first_global = std::find(sliding.begin(), sliding.end(), false);
  if (sliding.empty() || first_global == sliding.end()) return pattern;  // uniform
  const uint64_t first = static_cast<uint64_t>(first_global - sliding.begin());
  for (uint64_t period = std::max<uint64_t>(first, 1); period <= sliding.size(); ++period) {
    bool fits = true;
    for (uint64_t i = 0; i < sliding.size() && fits; ++i) fits = sliding[i] == (i % period != first % period);
    if (!fits) continue;
    pattern.type = "every_n";
    pattern.period = period;
    pattern.offset = first % period;
    return pattern;
  }
  pattern.type = "custom";
  for (const bool slides : sliding)
    pattern.layer_types.push_back(slides ? "sliding_attention" : "full_attention");
  return pattern;
}

std::string storage_tag(DType dtype) {
  if (dtype == DType::kQ4_K) return "q4k";
  if (dtype == DType::kQ6_K) return "q6k";
  std::string tag(dtype_name(dtype));
  std::transform(tag.begin(), tag.end(), tag.begin(),
                 [](char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c + 32) : c; });
  return tag;
}

/// The type that most bytes of the tensors with one of these roles have.
std::optional<DType> main_dtype(const std::vector<PlannedTensor>& tensors,
                                std::initializer_list<std::string_view> roles) {
  std::map<DType, uint64_t> bytes;
  for (const PlannedTensor& tensor : tensors)
    if (std::find(roles.begin(), roles.end(), tensor.role) != roles.end())
      bytes[tensor.dtype == DType::kU8 ? DType::kMXFP4 : tensor.dtype] += tensor.bytes();
  if (bytes.empty()) return std::nullopt;
  return std::max_element(bytes.begin(), bytes.end(),
                          [](const auto& a, const auto& b) { return a.second < b.second; })
      ->first;
}

void drop(rdrr::RawMembers& members, std::initializer_list<std::string_view> keys) {
  std::erase_if(members, [&](const auto& member) {
    return std::find(keys.begin(), keys.end(), member.first) != keys.end();
  });
}

std::string list_text(const std::vector<float>& values) {
  return fmt::format("[{}]", fmt::join(values, ","));
}

void set_rope(const ModelConfig& config, rdrr::Rope& rope) {
  rope.interleaved = config.rope_interleaved;
  rope.theta = config.rope_base;
  if (config.learned_positions) return;
  if (config.rope_base_local != config.rope_base) rope.local_theta = config.rope_base_local;
  if (config.rotary_dim != config.head_dim)
    rope.partial_rotary_factor = static_cast<double>(config.rotary_dim) / config.head_dim;
  const model::RopeScaling& scaling = config.rope_scaling;
  if (!scaling.type.empty()) rope.scaling_type = scaling.type;
  rope.scaling_factor = scaling.factor;
  if (scaling.type == "yarn") {
    rope.extra.emplace_back("yarnBetaFast", fmt::format("{}", scaling.beta_fast));
    rope.extra.emplace_back("yarnBetaSlow", fmt::format("{}", scaling.beta_slow));
    rope.extra.emplace_back("yarnOriginalMaxPos", fmt::format("{}", scaling.original_context));
  }
  if (!scaling.long_factors.empty()) {
    rope.extra.emplace_back("longropeShortFactor", list_text(scaling.short_factors));
    rope.extra.emplace_back("longropeLongFactor", list_text(scaling.long_factors));
    rope.extra.emplace_back("longropeOriginalMaxPos", fmt::format("{}", scaling.original_context));
  }
}

/// The original knows silu, gelu, geglu, swiglu and relu.
const char* activation_name(graph::Activation activation) {
  switch (activation) {
    case graph::Activation::kSilu:
    case graph::Activation::kSigmoid:
      return "silu";
    case graph::Activation::kGeluTanh:
    case graph::Activation::kGeluErf:
    case graph::Activation::kGeluQuick:
      return "gelu";
    case graph::Activation::kRelu:
      return "relu";
    case graph::Activation::kSwigluClamped:
      return "swiglu";
  }
  return "silu";
}

void set_experts(const ModelConfig& config, rdrr::Manifest& manifest) {
  if (config.experts == 0) return;
  manifest.inference.ffn.branch_mode = "moe";
  rdrr::MoeConfig moe{config.experts, config.experts_per_token, "", {}};
  moe.expert_format = config.family == model::Family::kGptOss ? "gpt-oss" : "mixtral";
  moe.extra.emplace_back("expertIntermediateSize", fmt::format("{}", config.expert_ffn));
  manifest.moe = std::move(moe);
}

void set_pooling(const ModelConfig& config, rdrr::Manifest& manifest) {
  if (config.pooling == model::Pooling::kNone) return;
  manifest.model_type = "embedding";
  if (config.pooling == model::Pooling::kFirst) return;  // which the original does not have
  manifest.inference.output.extra.emplace_back(
      "embeddingPostprocessor",
      fmt::format(R"({{"poolingMode":"{}","includePrompt":true,"projections":[],"normalize":{}}})",
                  config.pooling == model::Pooling::kMean ? "mean" : "last",
                  config.normalize ? "\"l2\"" : "null"));
}

bool any_name(const Plan& plan, std::string_view end) {
  return std::any_of(plan.tensors.begin(), plan.tensors.end(),
                     [&](const PlannedTensor& tensor) { return tensor.name.ends_with(end); });
}

/// What the original's keys cannot say, for this project's own reader.
void set_config_block(const Plan& plan, rdrr::Manifest& manifest) {
  drop(manifest.extra, {model::kConfigBlockKey});
  manifest.extra.emplace_back(model::kConfigBlockKey, model::config_block(plan.config));
}

}  // namespace

rdrr::Manifest make_manifest(const Plan& plan) {
  const ModelConfig& config = plan.config;
  rdrr::Manifest manifest;
  manifest.model_type = "transformer";
  for (const int32_t id : config.end_ids) manifest.eos_ids.push_back(static_cast<uint64_t>(id));
  manifest.architecture = rdrr::Architecture{.layers = config.layers,
                                             .hidden = config.hidden,
                                             .intermediate = config.ffn,
                                             .heads = config.heads,
                                             .kv_heads = config.kv_heads,
                                             .head_dim = config.head_dim,
                                             .vocab = config.vocab,
                                             .max_seq_len = config.max_context,
                                             .extra = {}};
  rdrr::Inference& inference = manifest.inference;
  inference.attention.query_pre_attn_scalar = scalar_of(config.attention_scale);
  inference.attention.logit_softcapping = unless_zero(config.attention_softcap);
  if (config.window != 0) inference.attention.sliding_window = config.window;
  inference.attention.query_key_norm = config.qk_norm;
  inference.attention.causal = config.causal;
  inference.attention.bias = any_name(plan, "q_proj.bias") || any_name(plan, "c_attn.bias") ||
                             any_name(plan, "query.bias") || any_name(plan, "qkv_proj.bias");

  inference.normalization.rms_eps = config.rms_eps;
  inference.normalization.weight_offset = config.norm_weight_offset != 0;
  // LLaMA's norm before the feed-forward goes by that name too.
  inference.normalization.post_attention = any_name(plan, ".post_attention_layernorm.weight");
  inference.normalization.pre_feedforward = inference.normalization.post_feedforward = config.sandwich_norms;
  if (config.layer_norm) inference.normalization.extra.emplace_back("type", "\"layernorm\"");
  inference.ffn.activation = activation_name(config.activation);
  inference.ffn.gated = config.gated_ffn;
  if (config.act_limit != 0) inference.ffn.swiglu_limit = config.act_limit;

  set_rope(config, inference.rope);
  inference.output.tied = config.tied_head;
  inference.output.scale_embeddings = config.embedding_scale != 1;
  inference.output.final_softcapping = unless_zero(config.final_softcap);
  inference.layer_pattern = layer_pattern(config);
  set_experts(config, manifest);
  set_pooling(config, manifest);
  inference.extra.emplace_back("session", kSession);
  inference.extra.emplace_back("execution", "null");
  set_config_block(plan, manifest);
  return manifest;
}

rdrr::Manifest rewrite_manifest(const rdrr::Manifest& source, const Plan& plan, bool keep_graph) {
  rdrr::Manifest manifest = source;
  drop(manifest.extra, {"artifactIdentity", "weightsRef", "blake3Full"});
  manifest.inference.attention.query_pre_attn_scalar = scalar_of(plan.config.attention_scale);
  manifest.inference.rope.interleaved = plan.config.rope_interleaved;
  rdrr::RawMembers& extra = manifest.inference.extra;
  if (!keep_graph) {
    manifest.inference.schema.reset();
    drop(extra, {"execution", "sessionDefaults", "defaultKernelPath"});
    extra.emplace_back("execution", "null");
  }
  const bool has_session =
      std::any_of(extra.begin(), extra.end(), [](const auto& member) { return member.first == "session"; });
  if (!has_session) extra.emplace_back("session", kSession);  // early manifests have none
  set_config_block(plan, manifest);
  return manifest;
}

void set_quantization(rdrr::Manifest& manifest, const std::vector<PlannedTensor>& tensors) {
  const DType weights = main_dtype(tensors, {"matmul", "expert"}).value_or(DType::kF32);
  const DType embeddings = main_dtype(tensors, {"embedding"}).value_or(weights);
  const DType head = main_dtype(tensors, {"lm_head"}).value_or(embeddings);
  manifest.quantization = rdrr::manifest_dtype(weights);
  drop(manifest.extra, {"quantizationInfo"});
  manifest.extra.emplace_back(
      "quantizationInfo", fmt::format(R"({{"weights":"{}","embeddings":"{}","lmHead":"{}","layout":"row"}})",
                                      storage_tag(weights), storage_tag(embeddings), storage_tag(head)));
}

std::string make_model_id(std::string_view name) {
  std::string id;
  for (const char c : name) {
    const bool upper = c >= 'A' && c <= 'Z';
    if (upper || (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9'))
      id += upper ? static_cast<char>(c + 32) : c;
    else if (!id.empty() && id.back() != '-')
      id += '-';
    if (id.size() == 96) break;
  }
  while (!id.empty() && id.back() == '-') id.pop_back();
  return id.empty() ? "model" : id;
}

std::string chat_type_of(std::string_view jinja) {
  struct Mark {
    const char *text, *type;
  };
  for (const Mark mark : {Mark{"<|im_start|>", "chatml"},
                          {"<start_of_turn>", "gemma"},
                          {"<|start_header_id|>", "llama3"},
                          {"<|channel|>", "gpt-oss"}})
    if (jinja.find(mark.text) != std::string_view::npos) return mark.type;
  return "";
}

}  // namespace doppler::convert_detail
