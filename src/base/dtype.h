#pragma once
// Storage types of tensors, named as GGUF and RDRR name them.
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>

namespace doppler {

enum class DType : uint8_t {
  kF32,
  kF16,
  kBF16,
  kQ4_0,
  kQ4_1,
  kQ5_0,
  kQ5_1,
  kQ8_0,
  kQ2_K,
  kQ3_K,
  kQ4_K,
  kQ5_K,
  kQ6_K,
  kQ8_K,
  kIQ4_NL,
  kIQ4_XS,
  kMXFP4,
  kI8,
  kI16,
  kI32,
  kI64,
  kF64,
  kU8,
};

struct DTypeInfo {
  DType dtype;
  std::string_view name;  // "Q4_K", as GGUF and RDRR write it
  uint32_t block_elems;   // values a block holds
  uint32_t block_bytes;
  int ggml_type;  // number in a GGUF file; -1 if GGUF has none
};

const DTypeInfo& dtype_info(DType dtype);
inline std::string_view dtype_name(DType dtype) { return dtype_info(dtype).name; }
std::optional<DType> dtype_from_name(std::string_view name);  // any case; "Q4_K_M" means Q4_K
std::optional<DType> dtype_from_ggml(uint32_t ggml_type);

/// Bytes of one row of `columns` values; a row is padded to whole blocks.
inline uint64_t row_bytes(DType dtype, uint64_t columns) {
  const DTypeInfo& info = dtype_info(dtype);
  return (columns + info.block_elems - 1) / info.block_elems * info.block_bytes;
}

/// True for the types both executors multiply with (weights stay packed).
bool is_runnable(DType dtype);

}  // namespace doppler
