#pragma once
// Packed blocks of random levels, for every quantised type: values of about the given size.
#include <cmath>
#include <cstddef>
#include <cstring>
#include <random>
#include <vector>

#include "base/dtype.h"
#include "base/half.h"

namespace doppler::test {

/// Blocks for `n` values (a multiple of the block size). Every bit of the levels and of the small scales is
/// random; f16 scales are chosen so that values reach about 2 * `size`.
inline std::vector<std::byte> random_blocks(DType dtype, size_t n, uint32_t seed, float size) {
  struct Scales {
    size_t first, second;  // byte offsets of f16 numbers; equal if there is one
    float largest;         // what a scale of 1 makes of the largest level
  };
  const auto scales = [&]() -> Scales {
    switch (dtype) {
      case DType::kQ2_K:
        return {80, 82, 15 * 3};
      case DType::kQ3_K:
        return {108, 108, 32 * 4};
      case DType::kQ4_K:
        return {0, 2, 63 * 15};
      case DType::kQ5_K:
        return {0, 2, 63 * 31};
      case DType::kQ6_K:
        return {208, 208, 128 * 32};
      case DType::kIQ4_NL:
        return {0, 0, 127};
      case DType::kIQ4_XS:
        return {0, 0, 32 * 127};
      case DType::kQ4_1:
        return {0, 2, 15};
      case DType::kQ5_1:
        return {0, 2, 31};
      case DType::kQ4_0:
        return {0, 0, 8};
      case DType::kQ5_0:
        return {0, 0, 16};
      default:
        return {0, 0, 127};  // Q8_0
    }
  }();
  const DTypeInfo& info = dtype_info(dtype);
  std::mt19937 random(seed);
  std::vector<std::byte> bytes(n / info.block_elems * info.block_bytes);
  for (std::byte& b : bytes) b = static_cast<std::byte>(random());
  for (size_t at = 0; at < bytes.size(); at += info.block_bytes) {
    const float spread = 0.5f + static_cast<float>(random() % 1024) / 1024;  // 0.5 to 1.5
    if (dtype == DType::kMXFP4) {  // 12 * 2^(exponent - 128) is near `size`
      const int exponent = 128 + static_cast<int>(std::lround(std::log2(size * spread / 12)));
      bytes[at] = static_cast<std::byte>(exponent);
      continue;
    }
    const uint16_t d = f32_to_f16(2 * size * spread / scales.largest);
    std::memcpy(bytes.data() + at + scales.first, &d, 2);
    if (scales.second == scales.first) continue;
    // The minimum centres the levels, whatever the scale of scales is.
    const bool simple = info.block_elems == 32;
    const float min_levels = dtype == DType::kQ2_K ? 15.0f : 63.0f;
    const uint16_t m = f32_to_f16(size * spread / (simple ? -1.0f : min_levels));
    std::memcpy(bytes.data() + at + scales.second, &m, 2);
  }
  return bytes;
}

}  // namespace doppler::test
