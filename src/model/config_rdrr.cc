#include "model/config_rdrr.h"

#include <fmt/format.h>

#include <cmath>

#include "base/log.h"
#include "base/text.h"
#include "model/config_block.h"
#include "model/limits.h"
#include "model/names.h"

namespace doppler::model {
namespace {

class Reader {
 public:
  explicit Reader(const rdrr::RdrrModel& model)
      : model_(model), manifest_(model.manifest()), inference_(manifest_.inference) {}

  Result<ModelConfig> read() {
    for (const auto& [key, text] : manifest_.extra)
      if (key == kConfigBlockKey) return read_own(text);
    DOPPLER_CHECK_OK(read_family());
    DOPPLER_CHECK_OK(read_sizes());
    DOPPLER_CHECK_OK(read_experts());
    DOPPLER_CHECK_OK(read_names());
    DOPPLER_CHECK_OK(read_numbers());
    DOPPLER_CHECK_OK(read_rope());
    DOPPLER_CHECK_OK(read_layer_pattern());
    DOPPLER_CHECK_OK(read_end_ids());
    return std::move(c_);
  }

 private:
  template <class... Args>
  tl::unexpected<Error> bad(fmt::format_string<Args...> format, Args&&... args) const {
    return fail(ErrorCode::kBadFile, "[manifest] {}: {}", model_.path(),
                fmt::format(format, std::forward<Args>(args)...));
  }
  template <class... Args>
  tl::unexpected<Error> unsupported(fmt::format_string<Args...> format, Args&&... args) const {
    return fail(ErrorCode::kUnsupported, "[manifest] {}: {}; Gemma 3, LLaMA and Mixtral models run",
                model_.path(), fmt::format(format, std::forward<Args>(args)...));
  }

  Result<void> count(std::string_view key, uint64_t value, uint64_t most, uint32_t& out) const {
    if (value == 0 || value > most)
      return bad("architecture.{} from 1 to {} wanted, got {}", key, most, value);
    out = static_cast<uint32_t>(value);
    return {};
  }

  /// A number that must be there and lie in [least, most].
  Result<float> number(std::string_view key, std::optional<double> value, double least, double most) const {
    if (!value) return bad("inference.{} wanted, the manifest has none", key);
    if (!(*value >= least && *value <= most))
      return bad("inference.{} from {} to {} wanted, got {}", key, least, most, *value);
    return static_cast<float>(*value);
  }

  /// A manifest of this project: sizes from the original's keys, all else from its own block.
  Result<ModelConfig> read_own(const std::string& block) {
    if (!manifest_.architecture) return bad("\"architecture\" wanted, the manifest has none");
    DOPPLER_CHECK_OK(read_sizes());
    DOPPLER_CHECK_OK(read_config_block(block, model_.path() + "/manifest.json", c_));
    DOPPLER_CHECK_OK(read_names());
    DOPPLER_CHECK_OK(read_end_ids());
    return std::move(c_);
  }

  /// The manifest names pipelines, not families: what the layers do decides.
  Result<void> read_family() {
    const rdrr::Attention& attention = inference_.attention;
    const rdrr::Normalization& norms = inference_.normalization;
    const bool mixtral = manifest_.moe && manifest_.moe->expert_format == "mixtral";
    if ((manifest_.moe && !mixtral) || manifest_.model_type == "gpt-oss" ||
        manifest_.model_type == "deepseek")
      return unsupported("a mixture of experts ({}) is not supported",
                         printable(manifest_.moe ? manifest_.moe->expert_format : manifest_.model_type));
    if (manifest_.model_type != "transformer" && !(mixtral && manifest_.model_type == "mixtral"))
      return unsupported("model type \"{}\" is not supported", printable(manifest_.model_type));
    if (!manifest_.architecture) return bad("\"architecture\" wanted, the manifest has none");
    if (!attention.causal || attention.bias || attention.output_gate || attention.value_norm)
      return unsupported(
          "attention that is not causal, or has biases, a gate or value norms, is not supported");
    if (inference_.ffn.double_wide || inference_.ffn.swiglu_limit || !inference_.ffn.gated ||
        (inference_.ffn.branch_mode != "auto" && inference_.ffn.branch_mode != "dense"))
      return unsupported("its feed-forward form is not supported");
    if (inference_.output.embedding_transpose || inference_.output.logit_input_scale != 1 ||
        inference_.layer_pattern.residual_branch_scale != 1)
      return unsupported("transposed embeddings and scaled residuals or logits are not supported");
    for (const auto& [key, text] : norms.extra)
      if (key == "type" && text == "\"layernorm\"")
        return unsupported("layer norms with means are not supported");

    const bool sandwich = norms.pre_feedforward && norms.post_feedforward;
    const std::string& activation = inference_.ffn.activation;
    const bool gelu = activation == "gelu" || activation == "geglu";
    const bool silu = activation == "silu" || activation == "swiglu";
    if (sandwich && norms.post_attention && attention.query_key_norm && gelu) {
      c_.family = Family::kGemma3;
      c_.sandwich_norms = c_.qk_norm = c_.local_rope = true;
      c_.activation = graph::Activation::kGeluTanh;
    } else if (!norms.pre_feedforward && !norms.post_feedforward && !attention.query_key_norm && silu) {
      c_.family = mixtral ? Family::kMixtral : Family::kLlama;
      c_.activation = graph::Activation::kSilu;
    } else {
      return unsupported(
          "a layer with activation \"{}\", sandwich norms {} and query-key norms {} is not supported",
          printable(activation), sandwich, attention.query_key_norm);
    }
    return {};
  }

  Result<void> read_sizes() {
    const rdrr::Architecture& a = *manifest_.architecture;
    c_.name = manifest_.model_id;
    DOPPLER_CHECK_OK(count("numLayers", a.layers, kMaxLayers, c_.layers));
    DOPPLER_CHECK_OK(count("hiddenSize", a.hidden, kMaxWidth, c_.hidden));
    DOPPLER_CHECK_OK(count("intermediateSize", a.intermediate, kMaxWidth, c_.ffn));
    DOPPLER_CHECK_OK(count("numAttentionHeads", a.heads, kMaxHeads, c_.heads));
    DOPPLER_CHECK_OK(count("numKeyValueHeads", a.kv_heads, kMaxHeads, c_.kv_heads));
    DOPPLER_CHECK_OK(count("headDim", a.head_dim, kMaxHeadDim, c_.head_dim));
    DOPPLER_CHECK_OK(count("vocabSize", a.vocab, kMaxVocab, c_.vocab));
    DOPPLER_CHECK_OK(count("maxSeqLen", a.max_seq_len, kMaxContext, c_.max_context));
    if (c_.heads % c_.kv_heads != 0)
      return bad("architecture.numKeyValueHeads that divides {} heads wanted, got {}", c_.heads, c_.kv_heads);
    return {};
  }

  Result<void> read_experts() {
    if (!manifest_.moe) return {};
    const rdrr::MoeConfig& moe = *manifest_.moe;
    if (moe.experts == 0 || moe.experts > kMaxExperts)
      return bad("moeConfig.numExperts from 1 to {} wanted, got {}", kMaxExperts, moe.experts);
    if (moe.experts_per_token == 0 || moe.experts_per_token > moe.experts)
      return bad("moeConfig.numExpertsPerToken from 1 to {} wanted, got {}", moe.experts,
                 moe.experts_per_token);
    c_.experts = static_cast<uint32_t>(moe.experts);
    c_.experts_per_token = static_cast<uint32_t>(moe.experts_per_token);
    c_.expert_ffn = c_.ffn;
    return {};
  }

  /// Finds the spelling under which the embedding is stored; every other weight goes by the same.
  Result<void> read_names() {
    c_.names = NameStyle::kHuggingFace;
    if (!find_prefixes(c_, model_)) {
      c_.names = NameStyle::kGguf;
      c_.name_prefix.clear();
    }
    const TensorInfo* embedding = model_.find(weight_name(c_, Role::kEmbedding));
    if (!embedding)
      return bad(
          "tensor model.embed_tokens.weight, with or without language_model. before it, or token_embd.weight "
          "wanted");
    // Padded vocabularies: the rows that are stored count.
    const uint64_t rows = inference_.output.embedding_vocab.value_or(c_.vocab);
    if (embedding->shape.size() != 2 || (embedding->rows() != c_.vocab && embedding->rows() != rows) ||
        embedding->rows() > kMaxVocab || embedding->columns() != c_.hidden)
      return bad("{} of shape {} x {} wanted, got {} x {}", embedding->name, c_.vocab, c_.hidden,
                 embedding->rows(), embedding->columns());
    c_.vocab = static_cast<uint32_t>(embedding->rows());

    // A manifest may say "tied" and still bring a head, or the other way round: the tensor decides.
    c_.tied_head = model_.find(weight_name(c_, Role::kHead)) == nullptr;
    if (c_.tied_head && !inference_.output.tied)
      return bad("tensor {} wanted, since the embeddings are not tied", weight_name(c_, Role::kHead));

    uint32_t present = 0;
    const Role first = c_.family == Family::kBert ? Role::kPostAttnNorm : Role::kAttnNorm;
    while (present <= c_.layers && model_.find(weight_name(c_, first, present))) ++present;
    if (present != c_.layers)
      return bad("architecture.numLayers of {} wanted (the layers the tensors hold), got {}", present,
                 c_.layers);
    return {};
  }

  Result<void> read_numbers() {
    DOPPLER_TRY(c_.rms_eps, number("normalization.rmsNormEps", inference_.normalization.rms_eps, 0, 1));
    c_.norm_weight_offset = inference_.normalization.weight_offset.value_or(false) ? 1.0f : 0.0f;
    if (inference_.output.scale_embeddings) c_.embedding_scale = std::sqrt(static_cast<float>(c_.hidden));
    if (inference_.output.embedding_scale) {
      DOPPLER_TRY(c_.embedding_scale,
                  number("output.embeddingScale", inference_.output.embedding_scale, 1e-6, 1e6));
    }

    DOPPLER_TRY(float scalar, number("attention.queryPreAttnScalar",
                                     inference_.attention.query_pre_attn_scalar, 1e-6, 1e9));
    // Early converters wrote sqrt(headDim) here for most families, though the engine takes the root again.
    const float head_dim = static_cast<float>(c_.head_dim);
    if (std::abs(scalar - std::sqrt(head_dim)) <= 1e-5f * scalar) scalar = head_dim;
    c_.attention_scale = 1.0f / std::sqrt(scalar);
    DOPPLER_TRY(c_.attention_softcap, number("attention.attnLogitSoftcapping",
                                             inference_.attention.logit_softcapping.value_or(0), 0, 1e6));
    DOPPLER_TRY(c_.final_softcap, number("output.finalLogitSoftcapping",
                                         inference_.output.final_softcapping.value_or(0), 0, 1e6));
    return {};
  }

  Result<void> read_rope() {
    const rdrr::Rope& rope = inference_.rope;
    DOPPLER_TRY(c_.rope_base, number("rope.ropeTheta", rope.theta, 1, 1e12));
    // The early converter looked for rope_theta alone and wrote its default where config.json has
    // rope_parameters; every published Mixtral has a million.
    if (c_.family == Family::kMixtral && !inference_.schema && c_.rope_base == 10000.0f) {
      log(LogLevel::kInfo,
          "[manifest] {}: a RoPE base of 1,000,000 is taken for the early converter's 10,000", model_.path());
      c_.rope_base = 1e6f;
    }
    DOPPLER_TRY(c_.rope_base_local,
                number("rope.ropeLocalTheta", rope.local_theta.value_or(c_.rope_base), 1, 1e12));
    c_.rope_interleaved = rope.interleaved;
    DOPPLER_TRY(const float part,
                number("rope.partialRotaryFactor", rope.partial_rotary_factor.value_or(1), 0, 1));
    c_.rotary_dim = static_cast<uint32_t>(std::lround(part * static_cast<float>(c_.head_dim)));
    if (c_.rotary_dim < 2 || c_.rotary_dim % 2 != 0)
      return bad("an even number of rotated dimensions wanted, got {}", c_.rotary_dim);
    c_.rope_scaling.type = rope.scaling_type.value_or("");
    DOPPLER_TRY(c_.rope_scaling.factor, number("rope.ropeScalingFactor", rope.scaling_factor, 1e-3, 1e6));
    return {};
  }

  Result<void> read_layer_pattern() {
    const std::optional<uint64_t> window = inference_.attention.sliding_window;
    if (!window || *window == 0) return {};
    if (*window > kMaxContext)
      return bad("inference.attention.slidingWindow up to {} wanted, got {}", kMaxContext, *window);
    c_.window = static_cast<uint32_t>(*window);
    const rdrr::LayerPattern& pattern = inference_.layer_pattern;
    c_.sliding.assign(c_.layers, true);  // "uniform": all slide
    if (pattern.type == "every_n") {
      if (!pattern.period) return bad("inference.layerPattern.period wanted for type every_n");
      const uint64_t global = pattern.offset.value_or(0) % *pattern.period;
      for (uint32_t i = 0; i < c_.layers; ++i) c_.sliding[i] = i % *pattern.period != global;
    } else if (pattern.type == "alternating") {
      const std::string which = pattern.global_pattern.value_or("");
      if (which != "odd" && which != "even")
        return bad("inference.layerPattern.globalPattern odd or even wanted, got \"{}\"", printable(which));
      for (uint32_t i = 0; i < c_.layers; ++i) c_.sliding[i] = (i % 2 == 1) != (which == "odd");
    } else if (pattern.type == "custom") {
      if (pattern.layer_types.size() != c_.layers)
        return bad("inference.layerPattern.layerTypes with {} entries wanted, got {}", c_.layers,
                   pattern.layer_types.size());
      for (uint32_t i = 0; i < c_.layers; ++i) {
        const std::string& type = pattern.layer_types[i];
        if (type != "full_attention" && type != "sliding_attention")
          return unsupported("a layer of type \"{}\" is not supported", printable(type));
        c_.sliding[i] = type == "sliding_attention";
      }
    } else if (pattern.type != "uniform") {
      return bad("inference.layerPattern.type uniform, every_n, alternating or custom wanted, got \"{}\"",
                 printable(pattern.type));
    }
    return {};
  }

  Result<void> read_end_ids() {
    for (const uint64_t id : manifest_.eos_ids) {
      if (id >= c_.vocab) return bad("eos_token_id below {} wanted, got {}", c_.vocab, id);
      c_.end_ids.push_back(static_cast<int32_t>(id));
    }
    if (inference_.chat_template.enabled) c_.chat_template_type = inference_.chat_template.type.value_or("");
    return {};
  }

  const rdrr::RdrrModel& model_;
  const rdrr::Manifest& manifest_;
  const rdrr::Inference& inference_;
  ModelConfig c_;
};

}  // namespace

Result<ModelConfig> config_from_rdrr(const rdrr::RdrrModel& model) { return Reader(model).read(); }

}  // namespace doppler::model
