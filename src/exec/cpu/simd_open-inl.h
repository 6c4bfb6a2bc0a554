// Packed blocks of weights to int8 values, scales and minima. Included by simd-inl.h inside its namespace,
// once per instruction set. Block layouts are ggml's (GGUF specification).

inline void set_scales(float* lanes, float first16, float second16) {
  for (size_t i = 0; i < 4; ++i) lanes[i] = first16;
  for (size_t i = 4; i < 8; ++i) lanes[i] = second16;
}

inline void set_mins(float* pair, float first16, float second16) {
  pair[0] = first16;
  pair[1] = second16;
}

// ---- Packed blocks to int8. `q`, `s`, `m` point at the row's start. ----

// 16 bytes of nibbles: 16 low halves, then 16 high halves, less `offset`. `fifth` (4 bytes, or none) holds
// one more bit for each of the 32 values.
inline void unpack_nibbles(const std::byte* nibbles, const std::byte* fifth, int offset, int8_t* q) {
#if defined(__AVX2__)
  const __m128i packed = _mm_loadu_si128(reinterpret_cast<const __m128i*>(nibbles));
  __m256i values =
      _mm256_and_si256(_mm256_set_m128i(_mm_srli_epi16(packed, 4), packed), _mm256_set1_epi8(15));
  if (fifth) {
    int bits;
    std::memcpy(&bits, fifth, sizeof bits);
    // Byte i of the result takes byte i / 8 of the bits and keeps bit i % 8.
    const __m256i bytes =
        _mm256_shuffle_epi8(_mm256_set1_epi32(bits),
                            _mm256_set_epi64x(0x0303030303030303, 0x0202020202020202, 0x0101010101010101, 0));
    const __m256i mask = _mm256_set1_epi64x(static_cast<long long>(0x8040201008040201ull));
    const __m256i set = _mm256_cmpeq_epi8(_mm256_and_si256(bytes, mask), mask);
    values = _mm256_or_si256(values, _mm256_and_si256(set, _mm256_set1_epi8(16)));
  }
  values = _mm256_sub_epi8(values, _mm256_set1_epi8(static_cast<char>(offset)));
  _mm256_storeu_si256(reinterpret_cast<__m256i*>(q), values);
#else
  for (size_t half = 0; half < 2; ++half) {
    for (size_t i = 0; i < 16; ++i) {
      int value = (byte_at(nibbles, i) >> (4 * half)) & 15;
      if (fifth) value |= ((byte_at(fifth, 2 * half + i / 8) >> (i % 8)) & 1) << 4;
      q[16 * half + i] = static_cast<int8_t>(value - offset);
    }
  }
#endif
}

// q[i] = (the low kBits of low[i] >> low_shift | (high[i] >> high_shift & high_mask) << kBits) - offset, for
// 32 bytes.
template <int kBits>
inline void unpack_planes(const std::byte* low, int low_shift, const std::byte* high, int high_shift,
                          int high_mask, int offset, int8_t* q) {
#if defined(__AVX2__)
  // 16-bit shifts carry bits across bytes; the masks drop them.
  const auto shifted = [](const std::byte* from, int shift, int mask) {
    const __m256i bytes = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(from));
    return _mm256_and_si256(_mm256_srl_epi16(bytes, _mm_cvtsi32_si128(shift)),
                            _mm256_set1_epi8(static_cast<char>(mask)));
  };
  __m256i values = shifted(low, low_shift, (1 << kBits) - 1);
  if (high_mask)
    values = _mm256_or_si256(values, _mm256_slli_epi16(shifted(high, high_shift, high_mask), kBits));
  values = _mm256_sub_epi8(values, _mm256_set1_epi8(static_cast<char>(offset)));
  _mm256_storeu_si256(reinterpret_cast<__m256i*>(q), values);
#else
  for (size_t i = 0; i < 32; ++i) {
    int value = (byte_at(low, i) >> low_shift) & ((1 << kBits) - 1);
    if (high_mask) value |= ((byte_at(high, i) >> high_shift) & high_mask) << kBits;
    q[i] = static_cast<int8_t>(value - offset);
  }
#endif
}

// 16 bytes of codes for `values`: 16 low halves, then 16 high halves.
inline void unpack_codes(const std::byte* codes, const int8_t* values, int8_t* q) {
#if defined(__AVX2__)
  const __m128i packed = _mm_loadu_si128(reinterpret_cast<const __m128i*>(codes));
  const __m256i index =
      _mm256_and_si256(_mm256_set_m128i(_mm_srli_epi16(packed, 4), packed), _mm256_set1_epi8(15));
  const __m256i table =
      _mm256_broadcastsi128_si256(_mm_loadu_si128(reinterpret_cast<const __m128i*>(values)));
  _mm256_storeu_si256(reinterpret_cast<__m256i*>(q), _mm256_shuffle_epi8(table, index));
#else
  for (size_t i = 0; i < 16; ++i) {
    q[i] = values[byte_at(codes, i) & 15];
    q[16 + i] = values[byte_at(codes, i) >> 4];
  }
#endif
}

template <bool kMin>
void open_q4(const std::byte* src, size_t groups, int8_t* q, float* s, float* m) {
  constexpr size_t kHead = kMin ? 4 : 2;
  constexpr int kOffset = kMin ? 0 : 8;
  for (size_t g = 0; g < groups; ++g, src += kHead + 16, q += 32, s += kScaleLanes) {
    const float d = half_at(src);
    set_scales(s, d, d);
    const float min = kMin ? half_at(src + 2) : 0.0f;
    set_mins(m + 2 * g, min, min);
    unpack_nibbles(src + kHead, nullptr, kOffset, q);
  }
}

template <bool kMin>
void open_q5(const std::byte* src, size_t groups, int8_t* q, float* s, float* m) {
  constexpr size_t kHead = kMin ? 4 : 2;
  constexpr int kOffset = kMin ? 0 : 16;
  for (size_t g = 0; g < groups; ++g, src += kHead + 20, q += 32, s += kScaleLanes) {
    const float d = half_at(src);
    set_scales(s, d, d);
    const float min = kMin ? half_at(src + 2) : 0.0f;
    set_mins(m + 2 * g, min, min);
    unpack_nibbles(src + kHead + 4, src + kHead, kOffset, q);
  }
}

void open_q8_0(const std::byte* src, size_t groups, int8_t* q, float* s, float* m) {
  for (size_t g = 0; g < groups; ++g, src += 34, q += 32, s += kScaleLanes) {
    const float d = half_at(src);
    set_scales(s, d, d);
    set_mins(m + 2 * g, 0, 0);
    std::memcpy(q, src + 2, 32);
  }
}

// Scale and minimum of sub-block j (of 8) out of the 12 packed bytes of Q4_K and Q5_K.
inline void k_scale_min(const std::byte* packed, size_t j, float& scale, float& min) {
  if (j < 4) {
    scale = static_cast<float>(byte_at(packed, j) & 63);
    min = static_cast<float>(byte_at(packed, j + 4) & 63);
  } else {
    scale = static_cast<float>((byte_at(packed, j + 4) & 15) | ((byte_at(packed, j - 4) >> 6) << 4));
    min = static_cast<float>((byte_at(packed, j + 4) >> 4) | ((byte_at(packed, j) >> 6) << 4));
  }
}

// Q4_K and Q5_K: d, dmin, 12 bytes of scales, [32 bytes of fifth bits,] 128 bytes of nibbles. 32 bytes of
// nibbles hold two sub-blocks: low halves, then high halves.
template <bool kFive>
void open_q45_k(const std::byte* src, size_t groups, int8_t* q, float* s, float* m) {
  constexpr size_t kBlock = kFive ? 176 : 144;
  for (size_t g = 0; g < groups; g += 8, src += kBlock) {
    const float d = half_at(src), dmin = half_at(src + 2);
    const std::byte* fifth = src + 16;
    const std::byte* nibbles = src + (kFive ? 48 : 16);
    const size_t count = groups - g < 8 ? groups - g : 8;  // a padded row's last block may be cut
    for (size_t j = 0; j < count; ++j, q += 32, s += kScaleLanes) {
      float scale, min;
      k_scale_min(src + 4, j, scale, min);
      set_scales(s, d * scale, d * scale);
      set_mins(m + 2 * (g + j), -dmin * min, -dmin * min);
      unpack_planes<4>(nibbles + 32 * (j / 2), j % 2 ? 4 : 0, fifth, static_cast<int>(j), kFive ? 1 : 0, 0,
                       q);
    }
  }
}

// Q6_K: 128 bytes of low nibbles, 64 of high pairs, 16 int8 scales (one per 16 values), d.
void open_q6_k(const std::byte* src, size_t groups, int8_t* q, float* s, float* m) {
  for (size_t g = 0; g < groups; g += 8, src += 210) {
    const float d = half_at(src + 208);
    const size_t count = groups - g < 8 ? groups - g : 8;
    for (size_t j = 0; j < count; ++j, q += 32, s += kScaleLanes) {
      const size_t half = j / 4, quarter = j % 4;  // 128 values a half, 32 a quarter
      const std::byte* low = src + 64 * half + 32 * (quarter % 2);
      const std::byte* high = src + 128 + 32 * half;
      const int low_shift = quarter < 2 ? 0 : 4, high_shift = static_cast<int>(2 * quarter);
      unpack_planes<4>(low, low_shift, high, high_shift, 3, 32, q);
      const auto scale = [&](size_t k) {
        return d * static_cast<float>(static_cast<int8_t>(byte_at(src, 192 + 2 * j + k)));
      };
      set_scales(s, scale(0), scale(1));
      set_mins(m + 2 * (g + j), 0, 0);
    }
  }
}

// Q2_K: 16 bytes of scales and minima (low and high halves, one byte per 16 values), 64 bytes, d, dmin.
void open_q2_k(const std::byte* src, size_t groups, int8_t* q, float* s, float* m) {
  for (size_t g = 0; g < groups; g += 8, src += 84) {
    const float d = half_at(src + 80), dmin = half_at(src + 82);
    const size_t count = groups - g < 8 ? groups - g : 8;
    for (size_t j = 0; j < count; ++j, q += 32, s += kScaleLanes) {
      unpack_planes<2>(src + 16 + 32 * (j / 4), static_cast<int>(2 * (j % 4)), nullptr, 0, 0, 0, q);
      const uint8_t first = byte_at(src, 2 * j), second = byte_at(src, 2 * j + 1);
      set_scales(s, d * static_cast<float>(first & 15), d * static_cast<float>(second & 15));
      set_mins(m + 2 * (g + j), -dmin * static_cast<float>(first >> 4),
               -dmin * static_cast<float>(second >> 4));
    }
  }
}

// Q3_K: 32 bytes of third bits, 64 bytes of low pairs, 12 bytes of 6-bit scales (one per 16 values), d.
void open_q3_k(const std::byte* src, size_t groups, int8_t* q, float* s, float* m) {
  for (size_t g = 0; g < groups; g += 8, src += 110) {
    const float d = half_at(src + 108);
    const std::byte* scales = src + 96;
    const auto scale = [&](size_t j) {  // low 4 bits in bytes 0 to 7, high pairs in 8 to 11
      const int low = (byte_at(scales, j % 8) >> (4 * (j / 8))) & 15;
      const int high = (byte_at(scales, 8 + j % 4) >> (2 * (j / 4))) & 3;
      return d * static_cast<float>((low | high << 4) - 32);
    };
    const size_t count = groups - g < 8 ? groups - g : 8;
    for (size_t j = 0; j < count; ++j, q += 32, s += kScaleLanes) {
      unpack_planes<2>(src + 32 + 32 * (j / 4), static_cast<int>(2 * (j % 4)), src, static_cast<int>(j), 1, 4,
                       q);
      set_scales(s, scale(2 * j), scale(2 * j + 1));
      set_mins(m + 2 * (g + j), 0, 0);
    }
  }
}

void open_iq4_nl(const std::byte* src, size_t groups, int8_t* q, float* s, float* m) {
  for (size_t g = 0; g < groups; ++g, src += 18, q += 32, s += kScaleLanes) {
    const float d = half_at(src);
    set_scales(s, d, d);
    set_mins(m + 2 * g, 0, 0);
    unpack_codes(src + 2, kIq4Values, q);
  }
}

// IQ4_XS: d, 2 bytes of high pairs and 4 of low halves of 6-bit scales (one per 32 values), 128 bytes.
void open_iq4_xs(const std::byte* src, size_t groups, int8_t* q, float* s, float* m) {
  for (size_t g = 0; g < groups; g += 8, src += 136) {
    const float d = half_at(src);
    const int high = byte_at(src, 2) | byte_at(src, 3) << 8;
    const size_t count = groups - g < 8 ? groups - g : 8;
    for (size_t j = 0; j < count; ++j, q += 32, s += kScaleLanes) {
      const int low = (byte_at(src, 4 + j / 2) >> (4 * (j % 2))) & 15;
      const float scale = d * static_cast<float>((low | ((high >> (2 * j)) & 3) << 4) - 32);
      set_scales(s, scale, scale);
      set_mins(m + 2 * (g + j), 0, 0);
      unpack_codes(src + 8 + 16 * j, kIq4Values, q);
    }
  }
}

// MXFP4: a byte that holds the scale's exponent, 16 bytes.
void open_mxfp4(const std::byte* src, size_t groups, int8_t* q, float* s, float* m) {
  for (size_t g = 0; g < groups; ++g, src += 17, q += 32, s += kScaleLanes) {
    const uint32_t exponent = byte_at(src, 0);
    const uint32_t bits = exponent < 2 ? 0x00200000u << exponent : (exponent - 1) << 23;
    float scale;
    std::memcpy(&scale, &bits, sizeof scale);
    set_scales(s, scale, scale);
    set_mins(m + 2 * g, 0, 0);
    unpack_codes(src + 1, kMxfp4Values, q);
  }
}

void open_row(DType dtype, const std::byte* packed, size_t groups, const OpenRows& out, size_t row) {
  int8_t* q = out.q + row * out.columns;
  float* s = out.scales + row * (out.columns / 4);
  float* m = out.mins + row * (out.columns / kMinGroup);
  switch (dtype) {
    case DType::kQ4_0:
      return open_q4<false>(packed, groups, q, s, m);
    case DType::kQ4_1:
      return open_q4<true>(packed, groups, q, s, m);
    case DType::kQ5_0:
      return open_q5<false>(packed, groups, q, s, m);
    case DType::kQ5_1:
      return open_q5<true>(packed, groups, q, s, m);
    case DType::kQ8_0:
      return open_q8_0(packed, groups, q, s, m);
    case DType::kQ4_K:
      return open_q45_k<false>(packed, groups, q, s, m);
    case DType::kQ5_K:
      return open_q45_k<true>(packed, groups, q, s, m);
    case DType::kQ6_K:
      return open_q6_k(packed, groups, q, s, m);
    case DType::kQ2_K:
      return open_q2_k(packed, groups, q, s, m);
    case DType::kQ3_K:
      return open_q3_k(packed, groups, q, s, m);
    case DType::kIQ4_NL:
      return open_iq4_nl(packed, groups, q, s, m);
    case DType::kIQ4_XS:
      return open_iq4_xs(packed, groups, q, s, m);
    case DType::kMXFP4:
      return open_mxfp4(packed, groups, q, s, m);
    default:
      return;
  }
}
