#include "model/rope_frequencies.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <numbers>
#include <vector>

#include "base/text.h"
#include "model/names.h"

namespace doppler::model {
namespace {

// LLaMA 3.1: wavelengths beyond original_context / low_freq_factor are stretched by `factor`, those below
// original_context / high_freq_factor stay, and those between are blended.
double llama3_stretch(double inv_freq, const RopeScaling& scaling) {
  const double wavelength = 2 * std::numbers::pi / inv_freq;
  const double context = scaling.original_context;
  if (wavelength < context / scaling.high_freq_factor) return inv_freq;
  if (wavelength > context / scaling.low_freq_factor) return inv_freq / scaling.factor;
  const double blend = (context / wavelength - scaling.low_freq_factor) /
                       static_cast<double>(scaling.high_freq_factor - scaling.low_freq_factor);
  return (1 - blend) * inv_freq / scaling.factor + blend * inv_freq;
}

Result<std::vector<float>> read_factors(const TensorInfo& info, const TensorSource& source, size_t count) {
  if (info.dtype != DType::kF32 || info.element_count() != count)
    return fail(ErrorCode::kBadFile, "[model] {} as {} F32 values wanted, got {} of {}", info.name, count,
                info.element_count(), dtype_name(info.dtype));
  DOPPLER_TRY(const TensorBytes bytes, source.bytes(info));
  if (bytes.data.size() < count * sizeof(float))
    return fail(ErrorCode::kBadFile, "[model] {} of {} bytes wanted, got {}", info.name,
                count * sizeof(float), bytes.data.size());
  std::vector<float> factors(count);
  std::memcpy(factors.data(), bytes.data.data(), count * sizeof(float));
  for (const float factor : factors)
    if (!(factor > 0) || !std::isfinite(factor))
      return fail(ErrorCode::kBadFile, "[model] {} of positive values wanted, got {}", info.name, factor);
  return factors;
}

// YaRN (arXiv 2309.00071): pairs that turn more than beta_fast times within the original context stay, those
// that turn less than beta_slow times are stretched, those between are blended. 1: pair i stays, 0: it is
// stretched.
double yarn_keep(double pair, double base, const ModelConfig& config) {
  const RopeScaling& s = config.rope_scaling;
  const double dim = config.rotary_dim;
  const auto pair_that_turns = [&](double turns) {
    return dim * std::log(s.original_context / (turns * 2 * std::numbers::pi)) / (2 * std::log(base));
  };
  double low = pair_that_turns(s.beta_fast), high = pair_that_turns(s.beta_slow);
  if (s.truncate) {
    low = std::floor(low);
    high = std::ceil(high);
  }
  low = std::max(low, 0.0);
  high = std::min(high, dim - 1);
  if (low == high) high += 0.001;
  return 1 - std::clamp((pair - low) / (high - low), 0.0, 1.0);
}

double yarn_magnitude(const RopeScaling& s) {
  const auto of = [&s](double mscale) {
    return s.factor <= 1 ? 1.0 : 0.1 * mscale * std::log(static_cast<double>(s.factor)) + 1.0;
  };
  if (s.attention_factor) return *s.attention_factor;
  if (s.mscale != 0 && s.mscale_all_dim != 0) return of(s.mscale) / of(s.mscale_all_dim);
  return of(1);
}

Result<void> check_yarn(const RopeScaling& s, double base) {
  if (s.original_context > 0 && s.beta_fast > s.beta_slow && s.beta_slow > 0 && base > 1) return {};
  return fail(ErrorCode::kBadFile,
              "[model] YaRN RoPE scaling with an original context, beta_fast > beta_slow > 0 and a base "
              "above 1 wanted, "
              "got {}, {}, {}, {}",
              s.original_context, s.beta_fast, s.beta_slow, base);
}

bool is_known(const std::string& type) {
  for (const char* known : {"", "none", "default", "linear", "dynamic", "yarn", "llama3", "longrope", "su"})
    if (type == known) return true;
  return false;
}

// LongRoPE's two tables of factors: the config's, or else the file's.
Result<bool> long_factors(const ModelConfig& config, const TensorSource& source, std::vector<float>& shorter,
                          std::vector<float>& longer) {
  const uint32_t pairs = config.rotary_dim / 2;
  shorter = config.rope_scaling.short_factors;
  longer = config.rope_scaling.long_factors;
  const TensorInfo* stored_short = source.find(weight_name(config, Role::kRopeShort));
  const TensorInfo* stored_long = source.find(weight_name(config, Role::kRopeLong));
  if (shorter.empty() && longer.empty() && stored_short && stored_long) {
    DOPPLER_TRY(shorter, read_factors(*stored_short, source, pairs));
    DOPPLER_TRY(longer, read_factors(*stored_long, source, pairs));
  }
  if (shorter.empty() && longer.empty()) return false;
  if (shorter.size() != pairs || longer.size() != pairs)
    return fail(ErrorCode::kBadFile,
                "[model] LongRoPE with {} short and {} long factors wanted, got {} and {}", pairs, pairs,
                shorter.size(), longer.size());
  return true;
}

}  // namespace

Result<graph::RopeTable> make_rope_table(const ModelConfig& config, const TensorSource& source, float base,
                                         bool scaled) {
  const uint32_t pairs = config.rotary_dim / 2;
  const RopeScaling& scaling = config.rope_scaling;
  const TensorInfo* stored = scaled ? source.find(weight_name(config, Role::kRopeFactors)) : nullptr;
  std::vector<float> factors;
  if (stored) {
    DOPPLER_TRY(factors, read_factors(*stored, source, pairs));
  }

  if (scaled && !is_known(scaling.type))
    return fail(ErrorCode::kUnsupported,
                "[model] RoPE scaling none, linear, dynamic, yarn, llama3 or longrope wanted, got \"{}\"",
                printable(scaling.type));
  // "dynamic" stretches nothing up to the positions the model was trained for, and max_context goes no
  // further.
  const bool linear = scaled && scaling.type == "linear", yarn = scaled && scaling.type == "yarn";
  const bool llama3 = scaled && scaling.type == "llama3" && !stored;
  if (llama3 && (scaling.original_context == 0 || !(scaling.high_freq_factor > scaling.low_freq_factor) ||
                 !(scaling.low_freq_factor > 0)))
    return fail(
        ErrorCode::kBadFile,
        "[model] llama3 RoPE scaling with an original context and 0 < low factor < high factor wanted, got "
        "{}, {}, {}",
        scaling.original_context, scaling.low_freq_factor, scaling.high_freq_factor);
  if (yarn) DOPPLER_CHECK_OK(check_yarn(scaling, base));
  std::vector<float> shorter, longer;
  DOPPLER_TRY(const bool longrope,
              scaled ? long_factors(config, source, shorter, longer) : Result<bool>(false));
  if (!longrope && scaled && (scaling.type == "longrope" || scaling.type == "su"))
    return fail(ErrorCode::kBadFile, "[model] LongRoPE with short and long factors wanted, {} has none",
                source.path());

  graph::RopeTable table;
  if (yarn) table.magnitude = static_cast<float>(yarn_magnitude(scaling));
  if (longrope) {
    table.long_above = scaling.original_context;
    table.magnitude = scaling.attention_factor.value_or(1.0f);
  }
  table.inv_freq.reserve(pairs);
  for (uint32_t i = 0; i < pairs; ++i) {
    double inv_freq = std::pow(static_cast<double>(base), -2.0 * i / config.rotary_dim);
    if (longrope) {
      table.inv_freq.push_back(static_cast<float>(inv_freq / shorter[i]));
      table.long_inv_freq.push_back(static_cast<float>(inv_freq / longer[i]));
      continue;
    }
    if (linear) inv_freq /= scaling.factor;
    if (llama3) inv_freq = llama3_stretch(inv_freq, scaling);
    if (yarn) {
      const double keep = yarn_keep(i, base, config);
      inv_freq *= keep + (1 - keep) / scaling.factor;
    }
    if (stored) inv_freq /= factors[i];
    table.inv_freq.push_back(static_cast<float>(inv_freq));
  }
  return table;
}

}  // namespace doppler::model
