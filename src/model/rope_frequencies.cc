#include "model/rope_frequencies.h"

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

  const bool linear = scaled && scaling.type == "linear";
  const bool llama3 = scaled && scaling.type == "llama3" && !stored;
  const bool known = scaling.type.empty() || scaling.type == "none" || scaling.type == "default" ||
                     scaling.type == "linear" || scaling.type == "llama3";
  if (scaled && !known)
    return fail(ErrorCode::kUnsupported, "[model] RoPE scaling none, linear or llama3 wanted, got \"{}\"",
                printable(scaling.type));
  if (llama3 && (scaling.original_context == 0 || !(scaling.high_freq_factor > scaling.low_freq_factor) ||
                 !(scaling.low_freq_factor > 0)))
    return fail(
        ErrorCode::kBadFile,
        "[model] llama3 RoPE scaling with an original context and 0 < low factor < high factor wanted, got "
        "{}, {}, {}",
        scaling.original_context, scaling.low_freq_factor, scaling.high_freq_factor);

  graph::RopeTable table;
  table.inv_freq.reserve(pairs);
  for (uint32_t i = 0; i < pairs; ++i) {
    double inv_freq = std::pow(static_cast<double>(base), -2.0 * i / config.rotary_dim);
    if (linear) inv_freq /= scaling.factor;
    if (llama3) inv_freq = llama3_stretch(inv_freq, scaling);
    if (stored) inv_freq /= factors[i];
    table.inv_freq.push_back(static_cast<float>(inv_freq));
  }
  return table;
}

}  // namespace doppler::model
