#include "base/dtype.h"

#include <array>
#include <cctype>
#include <string>

namespace doppler {
namespace {

// In enum order. Block layouts: ggml's public block definitions (GGUF specification).
constexpr std::array<DTypeInfo, 23> kTable{{
    {DType::kF32, "F32", 1, 4, 0},          {DType::kF16, "F16", 1, 2, 1},
    {DType::kBF16, "BF16", 1, 2, 30},       {DType::kQ4_0, "Q4_0", 32, 18, 2},
    {DType::kQ4_1, "Q4_1", 32, 20, 3},      {DType::kQ5_0, "Q5_0", 32, 22, 6},
    {DType::kQ5_1, "Q5_1", 32, 24, 7},      {DType::kQ8_0, "Q8_0", 32, 34, 8},
    {DType::kQ2_K, "Q2_K", 256, 84, 10},    {DType::kQ3_K, "Q3_K", 256, 110, 11},
    {DType::kQ4_K, "Q4_K", 256, 144, 12},   {DType::kQ5_K, "Q5_K", 256, 176, 13},
    {DType::kQ6_K, "Q6_K", 256, 210, 14},   {DType::kQ8_K, "Q8_K", 256, 292, 15},
    {DType::kIQ4_NL, "IQ4_NL", 32, 18, 20}, {DType::kIQ4_XS, "IQ4_XS", 256, 136, 23},
    {DType::kMXFP4, "MXFP4", 32, 17, 39},   {DType::kI8, "I8", 1, 1, 24},
    {DType::kI16, "I16", 1, 2, 25},         {DType::kI32, "I32", 1, 4, 26},
    {DType::kI64, "I64", 1, 8, 27},         {DType::kF64, "F64", 1, 8, 28},
    {DType::kU8, "U8", 1, 1, -1},
}};

}  // namespace

const DTypeInfo& dtype_info(DType dtype) { return kTable[static_cast<size_t>(dtype)]; }

std::optional<DType> dtype_from_name(std::string_view name) {
  std::string upper;
  for (char c : name) upper += static_cast<char>(std::toupper(static_cast<unsigned char>(c)));
  if (upper.ends_with("_K_M") || upper.ends_with("_K_S")) upper.resize(upper.size() - 2);
  for (const DTypeInfo& info : kTable)
    if (info.name == upper) return info.dtype;
  return std::nullopt;
}

std::optional<DType> dtype_from_ggml(uint32_t ggml_type) {
  for (const DTypeInfo& info : kTable)
    if (info.ggml_type >= 0 && static_cast<uint32_t>(info.ggml_type) == ggml_type) return info.dtype;
  return std::nullopt;
}

bool is_runnable(DType dtype) {
  switch (dtype) {
    case DType::kF32:
    case DType::kF16:
    case DType::kBF16:
    case DType::kQ4_0:
    case DType::kQ4_1:
    case DType::kQ5_0:
    case DType::kQ5_1:
    case DType::kQ8_0:
    case DType::kQ2_K:
    case DType::kQ3_K:
    case DType::kQ4_K:
    case DType::kQ5_K:
    case DType::kQ6_K:
    case DType::kIQ4_NL:
    case DType::kIQ4_XS:
    case DType::kMXFP4:
      return true;
    default:
      return false;
  }
}

}  // namespace doppler
