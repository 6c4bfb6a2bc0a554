#pragma once
// Which type each matrix of a quantised model gets.
#include <cstdint>
#include <optional>
#include <string_view>

#include "base/dtype.h"

namespace doppler::convert_detail {

/// What `--quant` asks for.
struct Quant {
  DType dtype = DType::kF32;
  bool mixed = false;  // "q4_k_m", "q5_k_m": some matrices get Q6_K
};

/// Any case. "q4_k" gives every matrix that type; with "_m" at its end some get more bits. std::nullopt: no
/// type that can be written.
std::optional<Quant> quant_from_name(std::string_view name);

struct MatrixUse {
  std::string_view name;    // as Hugging Face names it
  bool vocabulary = false;  // the embedding or the head
  uint32_t layer = 0, layers = 1;
};

/// The type of one matrix. Vocabulary matrices get Q6_K instead of Q4_K. Mixed: so do the value and down
/// projections of the first and last eighth of the layers and of every third between, and fused q, k, v get a
/// step more; it is the mix that files named Q4_K_M have.
DType recipe_dtype(const Quant& quant, const MatrixUse& use);

/// The type to take instead of a 256-value type for rows that do not fill its blocks, where that is no larger
/// than padded rows: Q5_0 for Q4_K, Q5_1 for Q5_K, Q8_0 for Q6_K. Otherwise `dtype`.
DType without_padding(DType dtype, uint64_t columns);

}  // namespace doppler::convert_detail
