// f32 -> packed blocks. The 32-value types round as ggml's reference does, byte for byte.
#include <algorithm>
#include <cassert>
#include <cmath>
#include <cstring>

#include "base/half.h"
#include "base/quant_blocks.h"
#include "base/quants.h"

namespace doppler {
namespace {

/// The scale as stored. Beyond f16 it saturates: a block of inf would turn zeros into NaN.
void put_half(std::byte* b, float f) {
  const uint16_t h = f32_to_f16(std::clamp(f, -65504.0f, 65504.0f));
  std::memcpy(b, &h, sizeof h);
}

/// Truncates to an integer in [0, top]; NaN gives 0.
uint8_t level(float v, int top) {
  if (!(v > 0)) return 0;
  return static_cast<uint8_t>(v >= static_cast<float>(top) ? top : static_cast<int>(v));
}

float inverse(float d) { return d != 0 ? 1.0f / d : 0.0f; }

/// The value of largest magnitude, with its sign.
float extreme(const float* x) {
  float best = 0;
  for (int i = 0; i < 32; ++i)
    if (std::fabs(x[i]) > std::fabs(best)) best = x[i];
  return best;
}

void put_low_halves(const uint8_t* q, std::byte* b) {
  for (int i = 0; i < 16; ++i) b[i] = static_cast<std::byte>((q[i] & 15) | (q[i + 16] & 15) << 4);
}

void put_fifth_bits(const uint8_t* q, std::byte* b) {
  uint32_t high = 0;
  for (int i = 0; i < 32; ++i) high |= static_cast<uint32_t>(q[i] >> 4) << i;
  std::memcpy(b, &high, sizeof high);
}

/// Q4_0 and Q5_0: the extreme value takes the lowest level, which has no positive twin.
template <int bits>
void pack_symmetric(const float* x, std::byte* b) {
  constexpr int kHalf = 1 << (bits - 1);
  const float d = extreme(x) / -kHalf, scale = inverse(d);
  uint8_t q[32];
  for (int i = 0; i < 32; ++i) q[i] = level(x[i] * scale + (kHalf + 0.5f), 2 * kHalf - 1);
  put_half(b, d);
  if (bits == 5) put_fifth_bits(q, b + 2);
  put_low_halves(q, b + (bits == 5 ? 6 : 2));
}

/// Q4_1 and Q5_1: levels spread from the least value to the greatest.
template <int bits>
void pack_with_min(const float* x, std::byte* b) {
  constexpr int kTop = (1 << bits) - 1;
  const auto [least, greatest] = std::minmax_element(x, x + 32);
  const float d = (*greatest - *least) / kTop, scale = inverse(d);
  uint8_t q[32];
  for (int i = 0; i < 32; ++i) q[i] = level((x[i] - *least) * scale + 0.5f, kTop);
  put_half(b, d);
  put_half(b + 2, *least);
  if (bits == 5) put_fifth_bits(q, b + 4);
  put_low_halves(q, b + (bits == 5 ? 8 : 4));
}

void pack_q8_0(const float* x, std::byte* b) {
  const float d = std::fabs(extreme(x)) / 127, scale = inverse(d);
  for (int i = 0; i < 32; ++i) {
    const float v = std::round(x[i] * scale);
    b[2 + i] = static_cast<std::byte>(static_cast<int8_t>(v >= -127 && v <= 127 ? v : 0));
  }
  put_half(b, d);
}

template <void (*pack)(const float*, std::byte*)>
void pack_all(DType dtype, const float* src, size_t n, std::byte* dst) {
  const DTypeInfo& info = dtype_info(dtype);
  assert(n % info.block_elems == 0);
  for (size_t i = 0; i < n; i += info.block_elems, dst += info.block_bytes) pack(src + i, dst);
}

template <uint16_t (*narrow)(float)>
void narrow_all(const float* src, size_t n, std::byte* dst) {
  for (size_t i = 0; i < n; ++i) {
    const uint16_t h = narrow(src[i]);
    std::memcpy(dst + 2 * i, &h, sizeof h);
  }
}

}  // namespace

bool can_quantize(DType dtype) {
  switch (dtype) {
    case DType::kQ2_K:
    case DType::kQ3_K:
    case DType::kIQ4_NL:
    case DType::kIQ4_XS:
    case DType::kMXFP4:
      return false;
    default:
      return is_runnable(dtype);
  }
}

void quantize(DType dtype, const float* src, size_t n, std::byte* dst) {
  switch (dtype) {
    case DType::kF32:
      if (n > 0) std::memcpy(dst, src, n * sizeof(float));
      return;
    case DType::kF16:
      return narrow_all<f32_to_f16>(src, n, dst);
    case DType::kBF16:
      return narrow_all<f32_to_bf16>(src, n, dst);
    case DType::kQ4_0:
      return pack_all<pack_symmetric<4>>(dtype, src, n, dst);
    case DType::kQ4_1:
      return pack_all<pack_with_min<4>>(dtype, src, n, dst);
    case DType::kQ5_0:
      return pack_all<pack_symmetric<5>>(dtype, src, n, dst);
    case DType::kQ5_1:
      return pack_all<pack_with_min<5>>(dtype, src, n, dst);
    case DType::kQ8_0:
      return pack_all<pack_q8_0>(dtype, src, n, dst);
    case DType::kQ4_K:
      return pack_all<pack_q4_k>(dtype, src, n, dst);
    case DType::kQ5_K:
      return pack_all<pack_q5_k>(dtype, src, n, dst);
    case DType::kQ6_K:
      return pack_all<pack_q6_k>(dtype, src, n, dst);
    default:
      assert(false && "quantize() to a type that can_quantize() refuses");
  }
}

}  // namespace doppler
