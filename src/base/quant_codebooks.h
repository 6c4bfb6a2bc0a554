#pragma once
// The 16 values behind the 4-bit codes of the codebook types (GGUF specification), as int8.
#include <cstdint>

namespace doppler {

/// IQ4_NL and IQ4_XS: levels denser around zero, where most weights lie.
inline constexpr int8_t kIq4Values[16] = {-127, -104, -83, -65, -49, -35, -22, -10,
                                          1,    13,   25,  38,  53,  69,  89,  113};

/// MXFP4: the numbers of 4-bit floats (1 sign, 2 exponent, 1 mantissa bit), doubled to be whole.
inline constexpr int8_t kMxfp4Values[16] = {0, 1, 2, 3, 4, 6, 8, 12, 0, -1, -2, -3, -4, -6, -8, -12};

/// Bits of the f32 that an MXFP4 block's exponent byte stands for, halved because the values are doubled:
/// 2^(exponent - 128), the lowest two of them subnormal.
constexpr uint32_t mxfp4_scale_bits(uint8_t exponent) {
  return exponent < 2 ? 0x00200000u << exponent : static_cast<uint32_t>(exponent - 1) << 23;
}

}  // namespace doppler
