// The loops behind simd.h. Included by each simd_*.cc after it defined DOPPLER_SIMD_NAMESPACE and
// DOPPLER_SIMD_NAME, and compiled with that instruction set's flags. Nothing here may call an inline function
// from elsewhere: the linker could keep this file's copy of it for the whole program.
#include <cstring>

#include "base/quant_codebooks.h"
#include "exec/cpu/simd.h"
#if defined(__AVX2__)
#include <immintrin.h>
#endif

namespace doppler::cpu {
namespace DOPPLER_SIMD_NAMESPACE {
namespace {

#if defined(__AVX512F__)
constexpr size_t kLanes = 16;
#elif defined(__AVX2__)
constexpr size_t kLanes = 8;
#else
constexpr size_t kLanes = 4;
#endif
typedef float Lanes __attribute__((vector_size(kLanes * sizeof(float))));
typedef float LanesAt __attribute__((vector_size(kLanes * sizeof(float)), aligned(4), may_alias));

inline void load(Lanes& to, const float* from) { to = *reinterpret_cast<const LanesAt*>(from); }

inline float sum_lanes(const Lanes& v) {
  float s[kLanes];
  std::memcpy(s, &v, sizeof s);
  for (size_t width = kLanes / 2; width > 0; width /= 2)
    for (size_t i = 0; i < width; ++i) s[i] += s[i + width];
  return s[0];
}

inline uint8_t byte_at(const std::byte* p, size_t i) { return static_cast<uint8_t>(p[i]); }

inline float half_at(const std::byte* p) {
  uint16_t h;
  std::memcpy(&h, p, sizeof h);
#if defined(__F16C__)
  return _cvtsh_ss(h);
#else
  const uint32_t sign = static_cast<uint32_t>(h & 0x8000u) << 16;
  const uint32_t exponent = (h >> 10) & 31u, mantissa = h & 1023u;
  uint32_t bits;
  if (exponent == 31) {
    bits = sign | 0x7f800000u | (mantissa << 13);
  } else if (exponent == 0) {  // zero or subnormal: mantissa * 2^-24
    const float magnitude = static_cast<float>(mantissa) * 0x1p-24f;
    std::memcpy(&bits, &magnitude, sizeof bits);
    bits |= sign;
  } else {
    bits = sign | ((exponent + 112) << 23) | (mantissa << 13);
  }
  float f;
  std::memcpy(&f, &bits, sizeof f);
  return f;
#endif
}

#include "exec/cpu/simd_open-inl.h"

void open_to_f32(const OpenRows& rows, size_t row, size_t count, float* out) {
  const int8_t* q = rows.q + row * rows.columns;
  const float* s = rows.scales + row * (rows.columns / 4);
  const float* m = rows.mins + row * (rows.columns / kMinGroup);
  for (size_t start = 0, h = 0; start < count; start += 16, ++h) {
    const float scale = s[4 * h], min = m[h];
    size_t i = start;
    const size_t end = count - start < 16 ? count : start + 16;
#if defined(__AVX512F__)
    if (end - i == 16) {
      const __m512i ints = _mm512_cvtepi8_epi32(_mm_loadu_si128(reinterpret_cast<const __m128i*>(q + i)));
      _mm512_storeu_ps(out + i,
                       _mm512_fmadd_ps(_mm512_cvtepi32_ps(ints), _mm512_set1_ps(scale), _mm512_set1_ps(min)));
      i = end;
    }
#elif defined(__AVX2__)
    for (; i + 8 <= end; i += 8) {
      const __m256i ints = _mm256_cvtepi8_epi32(_mm_loadl_epi64(reinterpret_cast<const __m128i*>(q + i)));
      _mm256_storeu_ps(out + i,
                       _mm256_fmadd_ps(_mm256_cvtepi32_ps(ints), _mm256_set1_ps(scale), _mm256_set1_ps(min)));
    }
#endif
    for (; i < end; ++i) out[i] = scale * static_cast<float>(q[i]) + min;
  }
}

void f16_to_f32(const std::byte* halves, size_t count, float* out) {
  size_t i = 0;
#if defined(__F16C__)
  for (; i + 8 <= count; i += 8)
    _mm256_storeu_ps(out + i,
                     _mm256_cvtph_ps(_mm_loadu_si128(reinterpret_cast<const __m128i*>(halves + 2 * i))));
#endif
  for (; i < count; ++i) out[i] = half_at(halves + 2 * i);
}

// ---- Activations to int8 ----

void quantize_row(const float* x, size_t count, const Int8Rows& out, size_t row) {
  int8_t* q = out.q + row * out.columns;
  float* scales = out.scales + row * (out.columns / kQuantGroup);
  float* sums = out.sums + row * (out.columns / kMinGroup);
  for (size_t start = 0, g = 0; start < out.columns; start += kQuantGroup, ++g) {
    float group[kQuantGroup] = {};
    const size_t filled = start >= count ? 0 : (count - start < kQuantGroup ? count - start : kQuantGroup);
    std::memcpy(group, x + (filled ? start : 0), filled * sizeof(float));
    float largest = 0, poison = 0;  // poison: 0, or NaN if any value is not finite
    for (size_t i = 0; i < kQuantGroup; ++i) {
      const float magnitude = group[i] < 0 ? -group[i] : group[i];
      largest = magnitude > largest ? magnitude : largest;
      poison += group[i] * 0.0f;
    }
    const bool usable = poison == 0.0f && largest > 1e-30f;
    const float inverse = usable ? 127.0f / largest : 0.0f;
    int sum[2] = {};
    if (usable) {
      for (size_t i = 0; i < kQuantGroup; ++i) {
        const float scaled = group[i] * inverse;
        const int rounded = static_cast<int>(scaled + (scaled < 0 ? -0.5f : 0.5f));
        q[start + i] = static_cast<int8_t>(rounded);
        sum[i / kMinGroup] += rounded;
      }
    } else {
      std::memset(q + start, 0, kQuantGroup);
    }
    scales[g] = usable ? largest / 127.0f : poison;
    for (size_t half = 0; half < 2; ++half) sums[2 * g + half] = scales[g] * static_cast<float>(sum[half]);
  }
}

// ---- Products ----

template <size_t kRows, size_t kTokens>
void tile_f32(const float* w, size_t w_stride, const float* x, size_t x_stride, size_t columns, float* out,
              size_t out_stride) {
  Lanes acc[kRows][kTokens] = {};
  size_t k = 0;
  for (; k + kLanes <= columns; k += kLanes) {
    Lanes xs[kTokens];
    for (size_t t = 0; t < kTokens; ++t) load(xs[t], x + t * x_stride + k);
    for (size_t r = 0; r < kRows; ++r) {
      Lanes ws;
      load(ws, w + r * w_stride + k);
      for (size_t t = 0; t < kTokens; ++t) acc[r][t] += ws * xs[t];
    }
  }
  for (size_t r = 0; r < kRows; ++r) {
    for (size_t t = 0; t < kTokens; ++t) {
      float sum = sum_lanes(acc[r][t]);
      for (size_t i = k; i < columns; ++i) sum += w[r * w_stride + i] * x[t * x_stride + i];
      out[t * out_stride + r] = sum;
    }
  }
}

#if defined(__AVX512F__)
constexpr size_t kTileTokens = 4;  // 16 accumulators of 32 registers
#else
constexpr size_t kTileTokens = 2;  // 8 accumulators of 16 registers
#endif

void products_f32(const float* w, size_t w_stride, size_t rows, const float* x, size_t x_stride,
                  size_t tokens, size_t columns, float* out, size_t out_stride) {
  for (size_t r = 0; r < rows;) {
    const size_t step = rows - r >= 4 ? 4 : 1;
    const float* wr = w + r * w_stride;
    size_t t = 0;
    for (; t + kTileTokens <= tokens; t += kTileTokens) {
      const float* xt = x + t * x_stride;
      float* to = out + t * out_stride + r;
      if (step == 4)
        tile_f32<4, kTileTokens>(wr, w_stride, xt, x_stride, columns, to, out_stride);
      else
        tile_f32<1, kTileTokens>(wr, w_stride, xt, x_stride, columns, to, out_stride);
    }
    for (; t < tokens; ++t) {
      const float* xt = x + t * x_stride;
      float* to = out + t * out_stride + r;
      if (step == 4)
        tile_f32<4, 1>(wr, w_stride, xt, x_stride, columns, to, out_stride);
      else
        tile_f32<1, 1>(wr, w_stride, xt, x_stride, columns, to, out_stride);
    }
    r += step;
  }
}

// What the minima of row `row` of w add to its product with row `token` of x.
float dot_mins(const OpenRows& w, size_t row, const Int8Rows& x, size_t token) {
  const size_t count = w.columns / kMinGroup;
  float out;
  tile_f32<1, 1>(w.mins + row * count, 0, x.sums + token * count, 0, count, &out, 0);
  return out;
}

#if defined(__AVX2__)
// 8 sums of 4 products each. The sign of w moves to x, so that w may be the unsigned operand: |w| <= 128 and
// |x| <= 127 keep the 16-bit pairs of maddubs in range.
inline __m256i dot4(__m256i magnitude_w, __m256i signed_x) {
#if defined(__AVX512VNNI__) && defined(__AVX512VL__)
  return _mm256_dpbusd_epi32(_mm256_setzero_si256(), magnitude_w, signed_x);
#else
  return _mm256_madd_epi16(_mm256_maddubs_epi16(magnitude_w, signed_x), _mm256_set1_epi16(1));
#endif
}

template <size_t kRows, size_t kTokens>
void tile_int8(const OpenRows& w, size_t row, bool with_mins, const Int8Rows& x, size_t token, float* out,
               size_t out_stride) {
  const size_t groups = w.columns / kQuantGroup;
  const int8_t* wq = w.q + row * w.columns;
  const float* ws = w.scales + row * (w.columns / 4);
  const int8_t* xq = x.q + token * x.columns;
  const float* xs = x.scales + token * groups;
  __m256 acc[kRows][kTokens];
  for (size_t r = 0; r < kRows; ++r)
    for (size_t t = 0; t < kTokens; ++t) acc[r][t] = _mm256_setzero_ps();
  for (size_t g = 0; g < groups; ++g) {
    for (size_t r = 0; r < kRows; ++r) {
      const __m256i weights =
          _mm256_loadu_si256(reinterpret_cast<const __m256i*>(wq + r * w.columns + 32 * g));
      const __m256i magnitudes = _mm256_abs_epi8(weights);
      const __m256 scales = _mm256_loadu_ps(ws + r * (w.columns / 4) + kScaleLanes * g);
      for (size_t t = 0; t < kTokens; ++t) {
        const __m256i values =
            _mm256_loadu_si256(reinterpret_cast<const __m256i*>(xq + t * x.columns + 32 * g));
        const __m256i sums = dot4(magnitudes, _mm256_sign_epi8(values, weights));
        const __m256 scale = _mm256_mul_ps(scales, _mm256_set1_ps(xs[t * groups + g]));
        acc[r][t] = _mm256_fmadd_ps(_mm256_cvtepi32_ps(sums), scale, acc[r][t]);
      }
    }
  }
  for (size_t r = 0; r < kRows; ++r) {
    for (size_t t = 0; t < kTokens; ++t) {
      float lanes[8];
      _mm256_storeu_ps(lanes, acc[r][t]);
      for (size_t width = 4; width > 0; width /= 2)
        for (size_t i = 0; i < width; ++i) lanes[i] += lanes[i + width];
      if (with_mins) lanes[0] += dot_mins(w, row + r, x, token + t);
      out[t * out_stride + r] = lanes[0];
    }
  }
}
#else
template <size_t kRows, size_t kTokens>
void tile_int8(const OpenRows& w, size_t row, bool with_mins, const Int8Rows& x, size_t token, float* out,
               size_t out_stride) {
  const size_t groups = w.columns / kQuantGroup;
  for (size_t r = row; r < row + kRows; ++r) {
    for (size_t t = token; t < token + kTokens; ++t) {
      float acc[2] = {};
      for (size_t h = 0; h < 2 * groups; ++h) {  // 16 values at a time: they share every scale
        const int8_t* wq = w.q + r * w.columns + 16 * h;
        const int8_t* xq = x.q + t * x.columns + 16 * h;
        int sum = 0;
        for (size_t i = 0; i < 16; ++i) sum += static_cast<int>(wq[i]) * static_cast<int>(xq[i]);
        const float scale = w.scales[r * (w.columns / 4) + 4 * h] * x.scales[t * groups + h / 2];
        acc[h % 2] += static_cast<float>(sum) * scale;
      }
      float total = acc[0] + acc[1];
      if (with_mins) total += dot_mins(w, r, x, t);
      out[(t - token) * out_stride + (r - row)] = total;
    }
  }
}
#endif

void products_int8(const OpenRows& w, size_t rows, bool with_mins, const Int8Rows& x, size_t tokens,
                   float* out, size_t out_stride) {
  for (size_t r = 0; r < rows;) {
    const size_t step = rows - r >= 4 ? 4 : 1;
    size_t t = 0;
    for (; t + 2 <= tokens; t += 2) {
      float* to = out + t * out_stride + r;
      if (step == 4)
        tile_int8<4, 2>(w, r, with_mins, x, t, to, out_stride);
      else
        tile_int8<1, 2>(w, r, with_mins, x, t, to, out_stride);
    }
    if (t < tokens) {
      float* to = out + t * out_stride + r;
      if (step == 4)
        tile_int8<4, 1>(w, r, with_mins, x, t, to, out_stride);
      else
        tile_int8<1, 1>(w, r, with_mins, x, t, to, out_stride);
    }
    r += step;
  }
}

template <size_t kTokens>
void tile_weighted(const float* p, size_t p_stride, const float* v, size_t v_stride, size_t rows,
                   size_t columns, float* out, size_t out_stride) {
  size_t d = 0;
  for (; d + kLanes <= columns; d += kLanes) {
    Lanes acc[kTokens];
    for (size_t t = 0; t < kTokens; ++t) load(acc[t], out + t * out_stride + d);
    for (size_t j = 0; j < rows; ++j) {
      Lanes value;
      load(value, v + j * v_stride + d);
      for (size_t t = 0; t < kTokens; ++t) acc[t] += p[t * p_stride + j] * value;
    }
    for (size_t t = 0; t < kTokens; ++t) std::memcpy(out + t * out_stride + d, &acc[t], sizeof(Lanes));
  }
  for (; d < columns; ++d)
    for (size_t t = 0; t < kTokens; ++t)
      for (size_t j = 0; j < rows; ++j) out[t * out_stride + d] += p[t * p_stride + j] * v[j * v_stride + d];
}

void weighted_rows(const float* p, size_t p_stride, size_t tokens, const float* v, size_t v_stride,
                   size_t rows, size_t columns, float* out, size_t out_stride) {
  size_t t = 0;
  for (; t + 4 <= tokens; t += 4)
    tile_weighted<4>(p + t * p_stride, p_stride, v, v_stride, rows, columns, out + t * out_stride,
                     out_stride);
  for (; t < tokens; ++t)
    tile_weighted<1>(p + t * p_stride, p_stride, v, v_stride, rows, columns, out + t * out_stride,
                     out_stride);
}

}  // namespace

extern const Simd kTable;
const Simd kTable{DOPPLER_SIMD_NAME, open_row,     open_to_f32,   f16_to_f32,
                  quantize_row,      products_f32, products_int8, weighted_rows};

}  // namespace DOPPLER_SIMD_NAMESPACE
}  // namespace doppler::cpu
