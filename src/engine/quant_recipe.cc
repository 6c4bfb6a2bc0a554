#include "engine/quant_recipe.h"

#include <algorithm>
#include <array>

#include "base/quants.h"

namespace doppler::convert_detail {
namespace {

bool names_any(std::string_view name, std::initializer_list<std::string_view> parts) {
  return std::any_of(parts.begin(), parts.end(),
                     [&](std::string_view part) { return name.find(part) != std::string_view::npos; });
}

/// Early layers feed all others and late ones feed the head: both keep more bits, and every third between.
bool gets_more_bits(uint32_t layer, uint32_t layers) {
  const uint32_t eighth = layers / 8;
  return layer < eighth || layer >= 7 * layers / 8 || (layer - eighth) % 3 == 2;
}

}  // namespace

std::optional<Quant> quant_from_name(std::string_view name) {
  const auto dtype = dtype_from_name(name);
  if (!dtype || !can_quantize(*dtype)) return std::nullopt;
  const bool mixed = name.ends_with("_m") || name.ends_with("_M");
  if (mixed && *dtype != DType::kQ4_K && *dtype != DType::kQ5_K) return std::nullopt;
  return Quant{*dtype, mixed};
}

DType recipe_dtype(const Quant& quant, const MatrixUse& use) {
  if (quant.dtype != DType::kQ4_K && quant.dtype != DType::kQ5_K) return quant.dtype;
  if (use.vocabulary) return quant.dtype == DType::kQ4_K || quant.mixed ? DType::kQ6_K : quant.dtype;
  if (!quant.mixed) return quant.dtype;
  if (names_any(use.name, {"qkv_proj", "qkv.", "c_attn"}))
    return quant.dtype == DType::kQ4_K ? DType::kQ5_K : DType::kQ6_K;
  // Down projections: down_proj, w2 of Mixtral's experts, mlp.c_proj of GPT-2.
  if (names_any(use.name, {"v_proj", "down_proj", ".w2.", "mlp.c_proj"}) &&
      gets_more_bits(use.layer, use.layers))
    return DType::kQ6_K;
  return quant.dtype;
}

DType without_padding(DType dtype, uint64_t columns) {
  struct Fallback {
    DType from, to;
  };
  constexpr std::array<Fallback, 3> kFallbacks{
      {{DType::kQ4_K, DType::kQ5_0}, {DType::kQ5_K, DType::kQ5_1}, {DType::kQ6_K, DType::kQ8_0}}};
  if (columns % 256 == 0) return dtype;
  for (const Fallback& f : kFallbacks)
    if (f.from == dtype && row_bytes(f.to, columns) <= row_bytes(dtype, columns)) return f.to;
  return dtype;
}

}  // namespace doppler::convert_detail
