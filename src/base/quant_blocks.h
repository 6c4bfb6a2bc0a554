#pragma once
// Where values and scales lie inside the 256-value blocks; shared by reading and writing them.
#include <cstddef>
#include <cstdint>

#include "base/dtype.h"

namespace doppler {

struct ScaleMin {
  uint8_t scale, min;  // 0..63
};

/// Scale and min of group g (0..7) in the 12 bytes of Q4_K and Q5_K. Groups 0 to 3 lie whole in the low 6
/// bits of bytes g and g + 4; groups 4 to 7 have 4 low bits each in byte g + 4 and 2 high bits atop those
/// bytes.
inline ScaleMin unpack_scale_min(const uint8_t* s, int g) {
  if (g < 4) return {static_cast<uint8_t>(s[g] & 63), static_cast<uint8_t>(s[g + 4] & 63)};
  return {static_cast<uint8_t>((s[g + 4] & 15) | (s[g - 4] >> 6) << 4),
          static_cast<uint8_t>((s[g + 4] >> 4) | (s[g] >> 6) << 4)};
}

/// The reverse; the 12 bytes start as zeros.
inline void pack_scale_min(uint8_t* s, int g, ScaleMin v) {
  if (g < 4) {
    s[g] = static_cast<uint8_t>(s[g] | v.scale);
    s[g + 4] = static_cast<uint8_t>(s[g + 4] | v.min);
  } else {
    s[g + 4] = static_cast<uint8_t>((v.scale & 15) | (v.min & 15) << 4);
    s[g - 4] = static_cast<uint8_t>(s[g - 4] | (v.scale >> 4) << 6);
    s[g] = static_cast<uint8_t>(s[g] | (v.min >> 4) << 6);
  }
}

struct Q6KPlace {
  int low_byte, low_shift;    // 4 bits, in the first 128 bytes
  int high_byte, high_shift;  // 2 bits, in the next 64
};

/// Where value i (0..255) of a Q6_K block lies: each half of 128 values is 4 runs of 32; runs 0 and 1 take
/// low nibbles, 2 and 3 the high nibbles of the same 64 bytes; all four share 32 bytes of high bits.
inline Q6KPlace q6_k_place(int i) {
  const int half = i / 128, run = i / 32 % 4, lane = i % 32;
  return {half * 64 + run % 2 * 32 + lane, run / 2 * 4, half * 32 + lane, run * 2};
}

struct Bits2Place {
  int byte, shift;
};

/// Where the low 2 bits of value i (0..255) of a Q2_K or Q3_K block lie in their 64 bytes: each half of 128
/// values is 4 runs of 32 that share 32 bytes, run r in bits 2 r and 2 r + 1.
inline Bits2Place bits2_place(int i) { return {i / 128 * 32 + i % 32, i / 32 % 4 * 2}; }

/// Scale j (0..15, of 16 values) in the 12 bytes of Q3_K, -32..31. Low 4 bits: byte j % 8, scales 8 to 15 in
/// its upper half; high 2 bits: byte 8 + j % 4, from bit 2 (j / 4).
inline int unpack_q3_scale(const uint8_t* s, int j) {
  const int low = s[j % 8] >> (j / 8 * 4) & 15, high = s[8 + j % 4] >> (j / 4 * 2) & 3;
  return (low | high << 4) - 32;
}

/// Scale of group g (0..7, of 32 values) of an IQ4_XS block, -32..31: 4 low bits in the bytes `low`, two high
/// bits each in `high`.
inline int unpack_iq4_scale(uint16_t high, const uint8_t* low, int g) {
  return ((low[g / 2] >> (g % 2 * 4) & 15) | (high >> (g * 2) & 3) << 4) - 32;
}

/// Writers of one 256-value block, searching for the least error (quantize_k.cc).
void pack_q4_k(const float* x, std::byte* block);
void pack_q5_k(const float* x, std::byte* block);
void pack_q6_k(const float* x, std::byte* block);

}  // namespace doppler
