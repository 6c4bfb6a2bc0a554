#include "base/quants.h"

#include <bit>
#include <cassert>
#include <cstring>

#include "base/half.h"
#include "base/quant_blocks.h"
#include "base/quant_codebooks.h"

namespace doppler {
namespace {

// Each function expands one block. `b` is the block, `y` its values.

float half_at(const std::byte* b) {
  uint16_t h;
  std::memcpy(&h, b, sizeof h);
  return f16_to_f32(h);
}

const uint8_t* u8(const std::byte* b) { return reinterpret_cast<const uint8_t*>(b); }

// The 32-value types keep value i in the low half of byte i and value i + 16 in the high half.

void expand_q4_0(const std::byte* b, float* y) {  // f16 d, 16 bytes
  const float d = half_at(b);
  const uint8_t* q = u8(b + 2);
  for (int i = 0; i < 16; ++i) {
    y[i] = d * static_cast<float>((q[i] & 15) - 8);
    y[i + 16] = d * static_cast<float>((q[i] >> 4) - 8);
  }
}

void expand_q4_1(const std::byte* b, float* y) {  // f16 d, f16 m, 16 bytes
  const float d = half_at(b), m = half_at(b + 2);
  const uint8_t* q = u8(b + 4);
  for (int i = 0; i < 16; ++i) {
    y[i] = d * static_cast<float>(q[i] & 15) + m;
    y[i + 16] = d * static_cast<float>(q[i] >> 4) + m;
  }
}

/// Value i of a 5-bit block: its fifth bit is bit i of `high`.
int five_bits(const uint8_t* q, uint32_t high, int i) {
  const int low = i < 16 ? q[i] & 15 : q[i - 16] >> 4;
  return low | static_cast<int>((high >> i & 1u) << 4);
}

void expand_q5_0(const std::byte* b, float* y) {  // f16 d, u32 fifth bits, 16 bytes
  const float d = half_at(b);
  uint32_t high;
  std::memcpy(&high, b + 2, sizeof high);
  for (int i = 0; i < 32; ++i) y[i] = d * static_cast<float>(five_bits(u8(b + 6), high, i) - 16);
}

void expand_q5_1(const std::byte* b, float* y) {  // f16 d, f16 m, u32 fifth bits, 16 bytes
  const float d = half_at(b), m = half_at(b + 2);
  uint32_t high;
  std::memcpy(&high, b + 4, sizeof high);
  for (int i = 0; i < 32; ++i) y[i] = d * static_cast<float>(five_bits(u8(b + 8), high, i)) + m;
}

void expand_q8_0(const std::byte* b, float* y) {  // f16 d, 32 signed bytes
  const float d = half_at(b);
  for (int i = 0; i < 32; ++i) y[i] = d * static_cast<float>(static_cast<int8_t>(u8(b + 2)[i]));
}

/// 16 bytes of codes: low halves are values 0..15, high halves 16..31.
void expand_codes(const uint8_t* codes, const int8_t* values, float d, float* y) {
  for (int i = 0; i < 16; ++i) {
    y[i] = d * static_cast<float>(values[codes[i] & 15]);
    y[i + 16] = d * static_cast<float>(values[codes[i] >> 4]);
  }
}

void expand_iq4_nl(const std::byte* b, float* y) {  // f16 d, 16 bytes
  expand_codes(u8(b + 2), kIq4Values, half_at(b), y);
}

void expand_mxfp4(const std::byte* b, float* y) {  // 1 byte exponent, 16 bytes
  expand_codes(u8(b + 1), kMxfp4Values, std::bit_cast<float>(mxfp4_scale_bits(u8(b)[0])), y);
}

// The 256-value types hold 8 groups of 32 (16 of 16 for Q2_K, Q3_K and Q6_K), each with its own scale.

void expand_q2_k(const std::byte* b, float* y) {  // 16 bytes of scales, 64 bytes, f16 d, f16 dmin
  const float d = half_at(b + 80), dmin = half_at(b + 82);
  for (int i = 0; i < 256; ++i) {
    const uint8_t s = u8(b)[i / 16];  // low half: scale, high half: min
    const Bits2Place p = bits2_place(i);
    const int q = u8(b + 16)[p.byte] >> p.shift & 3;
    y[i] = d * static_cast<float>(s & 15) * static_cast<float>(q) - dmin * static_cast<float>(s >> 4);
  }
}

void expand_q3_k(const std::byte* b, float* y) {  // 32 bytes of third bits, 64 bytes, 12 of scales, f16 d
  const float d = half_at(b + 108);
  for (int i = 0; i < 256; ++i) {
    const Bits2Place p = bits2_place(i);
    const int q = (u8(b + 32)[p.byte] >> p.shift & 3) | (u8(b)[i % 32] >> (i / 32) & 1) << 2;
    y[i] = d * static_cast<float>(unpack_q3_scale(u8(b + 96), i / 16)) * static_cast<float>(q - 4);
  }
}

void expand_iq4_xs(const std::byte* b, float* y) {  // f16 d, 2 + 4 bytes of scales, 128 bytes
  const float d = half_at(b);
  uint16_t high;
  std::memcpy(&high, b + 2, sizeof high);
  for (int g = 0; g < 8; ++g) {
    const float scale = d * static_cast<float>(unpack_iq4_scale(high, u8(b + 4), g));
    expand_codes(u8(b + 8 + 16 * g), kIq4Values, scale, y + 32 * g);
  }
}

void expand_q4_k(const std::byte* b, float* y) {  // f16 d, f16 dmin, 12 bytes of scales, 128 bytes
  const float d = half_at(b), dmin = half_at(b + 2);
  const uint8_t* q = u8(b + 16);
  for (int g = 0; g < 8; ++g) {  // groups 2k and 2k + 1 share 32 bytes: low and high halves
    const ScaleMin s = unpack_scale_min(u8(b + 4), g);
    const float scale = d * static_cast<float>(s.scale), min = dmin * static_cast<float>(s.min);
    const int shift = g % 2 * 4;
    for (int i = 0; i < 32; ++i)
      y[g * 32 + i] = scale * static_cast<float>(q[g / 2 * 32 + i] >> shift & 15) - min;
  }
}

void expand_q5_k(const std::byte* b, float* y) {  // as Q4_K, with 32 bytes of fifth bits before the halves
  const float d = half_at(b), dmin = half_at(b + 2);
  const uint8_t* high = u8(b + 16);  // bit g of byte i: value i of group g
  const uint8_t* q = u8(b + 48);
  for (int g = 0; g < 8; ++g) {
    const ScaleMin s = unpack_scale_min(u8(b + 4), g);
    const float scale = d * static_cast<float>(s.scale), min = dmin * static_cast<float>(s.min);
    const int shift = g % 2 * 4;
    for (int i = 0; i < 32; ++i) {
      const int v = (q[g / 2 * 32 + i] >> shift & 15) | (high[i] >> g & 1) << 4;
      y[g * 32 + i] = scale * static_cast<float>(v) - min;
    }
  }
}

void expand_q6_k(const std::byte* b, float* y) {  // 128 bytes low, 64 bytes high, 16 signed scales, f16 d
  const float d = half_at(b + 208);
  const auto* scales = reinterpret_cast<const int8_t*>(b + 192);
  for (int i = 0; i < 256; ++i) {
    const Q6KPlace p = q6_k_place(i);
    const int low = u8(b)[p.low_byte] >> p.low_shift & 15;
    const int high = u8(b + 128)[p.high_byte] >> p.high_shift & 3;
    y[i] = d * static_cast<float>(scales[i / 16]) * static_cast<float>((low | high << 4) - 32);
  }
}

template <void (*expand)(const std::byte*, float*)>
void expand_all(DType dtype, const std::byte* src, size_t n, float* dst) {
  const DTypeInfo& info = dtype_info(dtype);
  assert(n % info.block_elems == 0);
  for (size_t i = 0; i < n; i += info.block_elems, src += info.block_bytes) expand(src, dst + i);
}

template <float (*widen)(uint16_t)>
void widen_all(const std::byte* src, size_t n, float* dst) {
  for (size_t i = 0; i < n; ++i) {
    uint16_t h;
    std::memcpy(&h, src + 2 * i, sizeof h);
    dst[i] = widen(h);
  }
}

}  // namespace

void dequantize(DType dtype, const std::byte* src, size_t n, float* dst) {
  switch (dtype) {
    case DType::kF32:
      if (n > 0) std::memcpy(dst, src, n * sizeof(float));
      return;
    case DType::kF16:
      return widen_all<f16_to_f32>(src, n, dst);
    case DType::kBF16:
      return widen_all<bf16_to_f32>(src, n, dst);
    case DType::kQ4_0:
      return expand_all<expand_q4_0>(dtype, src, n, dst);
    case DType::kQ4_1:
      return expand_all<expand_q4_1>(dtype, src, n, dst);
    case DType::kQ5_0:
      return expand_all<expand_q5_0>(dtype, src, n, dst);
    case DType::kQ5_1:
      return expand_all<expand_q5_1>(dtype, src, n, dst);
    case DType::kQ8_0:
      return expand_all<expand_q8_0>(dtype, src, n, dst);
    case DType::kIQ4_NL:
      return expand_all<expand_iq4_nl>(dtype, src, n, dst);
    case DType::kMXFP4:
      return expand_all<expand_mxfp4>(dtype, src, n, dst);
    case DType::kQ2_K:
      return expand_all<expand_q2_k>(dtype, src, n, dst);
    case DType::kQ3_K:
      return expand_all<expand_q3_k>(dtype, src, n, dst);
    case DType::kIQ4_XS:
      return expand_all<expand_iq4_xs>(dtype, src, n, dst);
    case DType::kQ4_K:
      return expand_all<expand_q4_k>(dtype, src, n, dst);
    case DType::kQ5_K:
      return expand_all<expand_q5_k>(dtype, src, n, dst);
    case DType::kQ6_K:
      return expand_all<expand_q6_k>(dtype, src, n, dst);
    default:
      assert(false && "dequantize() of a type that is not runnable");
  }
}

}  // namespace doppler
