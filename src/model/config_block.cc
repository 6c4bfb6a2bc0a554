#include "model/config_block.h"

#include <array>
#include <nlohmann/json.hpp>
#include <utility>

#include "base/text.h"
#include "model/hf_keys.h"
#include "model/limits.h"

namespace doppler::model {
namespace {

using Json = nlohmann::ordered_json;
using graph::Activation;
using graph::Routing;

constexpr uint64_t kVersion = 1;

template <class T>
using Name = std::pair<T, const char*>;

constexpr std::array kActivations{Name<Activation>{Activation::kSilu, "silu"},
                                  Name<Activation>{Activation::kGeluTanh, "gelu_tanh"},
                                  Name<Activation>{Activation::kGeluErf, "gelu"},
                                  Name<Activation>{Activation::kGeluQuick, "gelu_quick"},
                                  Name<Activation>{Activation::kRelu, "relu"},
                                  Name<Activation>{Activation::kSigmoid, "sigmoid"},
                                  Name<Activation>{Activation::kSwigluClamped, "swiglu_clamped"}};
constexpr std::array kRoutings{Name<Routing>{Routing::kSoftmaxOfChosen, "softmax_of_chosen"},
                               Name<Routing>{Routing::kSoftmaxOverAll, "softmax_over_all"}};
constexpr std::array kPoolings{Name<Pooling>{Pooling::kNone, "none"}, Name<Pooling>{Pooling::kFirst, "first"},
                               Name<Pooling>{Pooling::kMean, "mean"}, Name<Pooling>{Pooling::kLast, "last"}};

template <class T, size_t N>
const char* name_of(const std::array<Name<T>, N>& names, T value) {
  for (const auto& [known, name] : names)
    if (known == value) return name;
  return "";
}

template <class T, size_t N>
Result<T> value_of(const std::array<Name<T>, N>& names, const HfKeys& keys, std::string_view key) {
  DOPPLER_TRY(const std::string text, keys.text(key));
  std::string known;
  for (const auto& [value, name] : names) {
    if (text == name) return value;
    known += (known.empty() ? "" : ", ") + std::string(name);
  }
  return fail(ErrorCode::kUnsupported, "[model] {}: {} of {} wanted, got \"{}\"", keys.path(), key, known,
              printable(text));
}

// The layers for which a flag is set, by number.
Json numbers_of(const std::vector<bool>& flags) {
  Json out = Json::array();
  for (size_t i = 0; i < flags.size(); ++i)
    if (flags[i]) out.push_back(i);
  return out;
}

Json scaling_json(const RopeScaling& s) {
  Json out = {{"type", s.type},
              {"factor", s.factor},
              {"lowFreqFactor", s.low_freq_factor},
              {"highFreqFactor", s.high_freq_factor},
              {"originalContext", s.original_context},
              {"betaFast", s.beta_fast},
              {"betaSlow", s.beta_slow},
              {"truncate", s.truncate},
              {"mscale", s.mscale},
              {"mscaleAllDim", s.mscale_all_dim},
              {"shortFactors", s.short_factors},
              {"longFactors", s.long_factors}};
  if (s.attention_factor) out["attentionFactor"] = *s.attention_factor;
  return out;
}

class Reader {
 public:
  Reader(const HfKeys& keys, ModelConfig& config) : keys_(keys), c_(config) {}

  Result<void> read() {
    DOPPLER_TRY(const uint32_t version, keys_.count("version", 0, UINT32_MAX));
    if (version != kVersion)
      return fail(ErrorCode::kUnsupported, "[model] {}: version {} wanted, got {}; use a newer doppler",
                  keys_.path(), kVersion, version);
    DOPPLER_CHECK_OK(read_family());
    DOPPLER_CHECK_OK(read_layer());
    DOPPLER_CHECK_OK(read_experts());
    DOPPLER_CHECK_OK(read_rope());
    DOPPLER_CHECK_OK(read_window());
    return read_pooling();
  }

 private:
  Result<void> read_family() {
    DOPPLER_TRY(const std::string name, keys_.text("family"));
    for (int i = 0; i <= static_cast<int>(Family::kBert); ++i)
      if (name == family_name(static_cast<Family>(i))) {
        c_.family = static_cast<Family>(i);
        return {};
      }
    return fail(ErrorCode::kUnsupported, "[model] {}: a family that runs wanted, got \"{}\"", keys_.path(),
                printable(name));
  }

  Result<void> number(const char* key, double least, double most, float& out) {
    DOPPLER_TRY(const std::optional<float> value, keys_.find_number(key, least, most));
    out = value.value_or(out);
    return {};
  }
  Result<void> flag(const char* key, bool& out) {
    DOPPLER_TRY(out, keys_.flag(key, false));
    return {};
  }

  Result<void> read_layer() {
    DOPPLER_CHECK_OK(number("normEps", 0, 1, c_.rms_eps));
    DOPPLER_CHECK_OK(number("normWeightOffset", -1, 1, c_.norm_weight_offset));
    DOPPLER_CHECK_OK(flag("sandwichNorms", c_.sandwich_norms));
    DOPPLER_CHECK_OK(flag("qkNorm", c_.qk_norm));
    DOPPLER_CHECK_OK(flag("layerNorm", c_.layer_norm));
    DOPPLER_CHECK_OK(flag("learnedPositions", c_.learned_positions));
    DOPPLER_CHECK_OK(flag("sinks", c_.sinks));
    DOPPLER_TRY(c_.gated_ffn, keys_.flag("gatedFfn", true));
    DOPPLER_TRY(c_.causal, keys_.flag("causal", true));
    DOPPLER_CHECK_OK(flag("transposed", c_.transposed));
    DOPPLER_CHECK_OK(number("embeddingScale", 1e-6, 1e6, c_.embedding_scale));
    DOPPLER_CHECK_OK(number("attentionScale", 1e-9, 1e6, c_.attention_scale));
    DOPPLER_CHECK_OK(number("attentionSoftcap", 0, 1e6, c_.attention_softcap));
    DOPPLER_CHECK_OK(number("finalSoftcap", 0, 1e6, c_.final_softcap));
    DOPPLER_TRY(c_.activation, value_of(kActivations, keys_, "activation"));
    DOPPLER_CHECK_OK(number("actLimit", 0, 1e6, c_.act_limit));
    DOPPLER_CHECK_OK(number("actAlpha", 0, 1e6, c_.act_alpha));
    if (c_.attention_scale > 0) return {};
    return fail(ErrorCode::kBadFile, "[model] {}: attentionScale above 0 wanted, it has none", keys_.path());
  }

  Result<void> read_experts() {
    DOPPLER_TRY(const std::optional<uint32_t> experts, keys_.find_count("experts", 0, kMaxExperts));
    c_.experts = experts.value_or(0);
    if (c_.experts == 0) return {};
    DOPPLER_TRY(c_.experts_per_token, keys_.count("expertsPerToken", 1, c_.experts));
    DOPPLER_TRY(c_.expert_ffn, keys_.count("expertFfn", 1, kMaxWidth));
    DOPPLER_TRY(c_.routing, value_of(kRoutings, keys_, "routing"));
    DOPPLER_CHECK_OK(flag("gateInterleaved", c_.gate_interleaved));
    DOPPLER_CHECK_OK(flag("expertsTransposed", c_.experts_transposed));
    return layer_flags("denseLayers", c_.dense);
  }

  Result<void> read_rope() {
    DOPPLER_CHECK_OK(number("ropeBase", 1, 1e12, c_.rope_base));
    c_.rope_base_local = c_.rope_base;
    DOPPLER_CHECK_OK(number("ropeBaseLocal", 1, 1e12, c_.rope_base_local));
    DOPPLER_CHECK_OK(flag("localRope", c_.local_rope));
    DOPPLER_CHECK_OK(flag("ropeInterleaved", c_.rope_interleaved));
    DOPPLER_TRY(const std::optional<uint32_t> rotary, keys_.find_count("rotaryDim", 0, c_.head_dim));
    c_.rotary_dim = rotary.value_or(c_.head_dim);
    if (!c_.learned_positions && (c_.rotary_dim < 2 || c_.rotary_dim % 2 != 0))
      return fail(ErrorCode::kBadFile, "[model] {}: an even rotaryDim from 2 to {} wanted, got {}",
                  keys_.path(), c_.head_dim, c_.rotary_dim);
    const std::optional<HfKeys> scaling = keys_.child("ropeScaling");
    return scaling ? read_scaling(*scaling) : Result<void>();
  }

  Result<void> read_scaling(const HfKeys& keys) {
    RopeScaling& s = c_.rope_scaling;
    const auto scalar = [&keys](const char* key, double least, double most, float& out) -> Result<void> {
      DOPPLER_TRY(const std::optional<float> value, keys.find_number(key, least, most));
      out = value.value_or(out);
      return {};
    };
    DOPPLER_TRY(s.type, keys.text("type"));
    DOPPLER_CHECK_OK(scalar("factor", 1e-3, 1e6, s.factor));
    DOPPLER_CHECK_OK(scalar("lowFreqFactor", 1e-6, 1e6, s.low_freq_factor));
    DOPPLER_CHECK_OK(scalar("highFreqFactor", 1e-6, 1e6, s.high_freq_factor));
    DOPPLER_CHECK_OK(scalar("betaFast", 1e-6, 1e6, s.beta_fast));
    DOPPLER_CHECK_OK(scalar("betaSlow", 1e-6, 1e6, s.beta_slow));
    DOPPLER_CHECK_OK(scalar("mscale", 0, 1e6, s.mscale));
    DOPPLER_CHECK_OK(scalar("mscaleAllDim", 0, 1e6, s.mscale_all_dim));
    DOPPLER_TRY(const std::optional<uint32_t> original, keys.find_count("originalContext", 0, kMaxContext));
    s.original_context = original.value_or(0);
    DOPPLER_TRY(s.truncate, keys.flag("truncate", true));
    DOPPLER_TRY(s.attention_factor, keys.find_number("attentionFactor", 1e-6, 1e6));
    DOPPLER_TRY(s.short_factors, keys.numbers("shortFactors"));
    DOPPLER_TRY(s.long_factors, keys.numbers("longFactors"));
    for (const std::vector<float>* list : {&s.short_factors, &s.long_factors})
      for (const float value : *list)
        if (!(value > 0))
          return fail(ErrorCode::kBadFile, "[model] {}: RoPE factors above 0 wanted, got {}", keys.path(),
                      value);
    return {};
  }

  Result<void> read_window() {
    DOPPLER_TRY(const std::optional<uint32_t> window, keys_.find_count("window", 0, kMaxContext));
    c_.window = window.value_or(0);
    c_.sliding.clear();
    return c_.window == 0 ? Result<void>() : layer_flags("slidingLayers", c_.sliding);
  }

  // Numbers of layers to a flag each; none where the key is absent.
  Result<void> layer_flags(std::string_view key, std::vector<bool>& flags) {
    flags.clear();
    if (!keys_.has(key)) return {};
    DOPPLER_TRY(const std::vector<int64_t> numbers, keys_.whole_numbers(key));
    flags.resize(c_.layers);
    for (const int64_t number : numbers) {
      if (number < 0 || number >= static_cast<int64_t>(c_.layers))
        return fail(ErrorCode::kBadFile, "[model] {}: {} from 0 to {} wanted, got {}", keys_.path(), key,
                    c_.layers - 1, number);
      flags[static_cast<size_t>(number)] = true;
    }
    return {};
  }

  Result<void> read_pooling() {
    DOPPLER_TRY(c_.pooling, value_of(kPoolings, keys_, "pooling"));
    DOPPLER_CHECK_OK(flag("normalize", c_.normalize));
    DOPPLER_TRY(const std::optional<uint32_t> limit, keys_.find_count("textLimit", 0, c_.max_context));
    c_.text_limit = limit.value_or(0);
    if (c_.pooling != Pooling::kNone || (c_.causal && c_.family != Family::kBert)) return {};
    return fail(ErrorCode::kBadFile, "[model] {}: a pooling wanted for an encoder, it has none",
                keys_.path());
  }

  const HfKeys& keys_;
  ModelConfig& c_;
};

}  // namespace

std::string config_block(const ModelConfig& c) {
  Json out = {{"version", kVersion},
              {"family", family_name(c.family)},
              {"normEps", c.rms_eps},
              {"normWeightOffset", c.norm_weight_offset},
              {"sandwichNorms", c.sandwich_norms},
              {"qkNorm", c.qk_norm},
              {"layerNorm", c.layer_norm},
              {"learnedPositions", c.learned_positions},
              {"sinks", c.sinks},
              {"gatedFfn", c.gated_ffn},
              {"causal", c.causal},
              {"transposed", c.transposed},
              {"embeddingScale", c.embedding_scale},
              {"attentionScale", c.attention_scale},
              {"attentionSoftcap", c.attention_softcap},
              {"finalSoftcap", c.final_softcap},
              {"activation", name_of(kActivations, c.activation)},
              {"actLimit", c.act_limit},
              {"actAlpha", c.act_alpha},
              {"pooling", name_of(kPoolings, c.pooling)},
              {"normalize", c.normalize},
              {"textLimit", c.text_limit}};
  if (c.experts > 0) {
    out["experts"] = c.experts;
    out["expertsPerToken"] = c.experts_per_token;
    out["expertFfn"] = c.expert_ffn;
    out["routing"] = name_of(kRoutings, c.routing);
    out["gateInterleaved"] = c.gate_interleaved;
    out["expertsTransposed"] = c.experts_transposed;
    if (!c.dense.empty()) out["denseLayers"] = numbers_of(c.dense);
  }
  if (!c.learned_positions) {
    out["ropeBase"] = c.rope_base;
    out["ropeBaseLocal"] = c.rope_base_local;
    out["localRope"] = c.local_rope;
    out["ropeInterleaved"] = c.rope_interleaved;
    out["rotaryDim"] = c.rotary_dim;
    out["ropeScaling"] = scaling_json(c.rope_scaling);
  }
  if (c.window != 0) {
    out["window"] = c.window;
    if (!c.sliding.empty()) out["slidingLayers"] = numbers_of(c.sliding);
  }
  return out.dump(-1, ' ', false, Json::error_handler_t::replace);
}

Result<void> read_config_block(std::string_view json, const std::string& where, ModelConfig& config) {
  DOPPLER_TRY(const HfKeys keys, HfKeys::parse(json, where + ", " + std::string(kConfigBlockKey)));
  return Reader(keys, config).read();
}

}  // namespace doppler::model
