#pragma once
// The inner loops of the CPU executor, compiled once per instruction set (simd_*.cc) and chosen at run time.
//
// Every sum is taken in an order that depends on `columns` alone, never on how many rows or tokens are asked
// for together, so a token's result does not depend on the chunk it came in.
#include <cstddef>
#include <cstdint>

#include "base/dtype.h"

namespace doppler::cpu {

inline constexpr size_t kQuantGroup = 32;  // values that share an activation scale
inline constexpr size_t kScaleLanes = 8;   // weight scales kept per 32 values, one for each 4
inline constexpr size_t kMinGroup = 16;    // values that share a minimum (Q2_K's change this often)

/// Rows of packed weights opened to int8: value = scale * q + min. Row r starts at q + r * columns,
/// scales + r * columns / 4, mins + r * columns / 16; `columns` counts whole groups of 32.
struct OpenRows {
  int8_t* q;
  float* scales;  // 8 per 32 values (they change every 16 values or every 32)
  float* mins;    // 1 per 16 values; zero for the types without
  size_t columns;
};

/// Rows of activations quantised to int8 per 32 values: x = scale * q.
struct Int8Rows {
  int8_t* q;      // [rows, columns]
  float* scales;  // [rows, columns / 32]
  float* sums;    // [rows, columns / 16]: scale * sum of q
  size_t columns;
};

struct Simd {
  const char* name;

  /// Opens one row of `groups` x 32 values of a packed type into row `row` of `out`.
  void (*open_row)(DType dtype, const std::byte* packed, size_t groups, const OpenRows& out, size_t row);
  /// The f32 values of an opened row.
  void (*open_to_f32)(const OpenRows& rows, size_t row, size_t count, float* out);
  void (*f16_to_f32)(const std::byte* halves, size_t count, float* out);

  /// Quantises `count` values into row `row`; what is left of its last group becomes zero. A group that holds
  /// an infinity or a NaN gets a NaN scale.
  void (*quantize_row)(const float* x, size_t count, const Int8Rows& out, size_t row);

  /// out[t * out_stride + r] = sum over k of w[r * w_stride + k] * x[t * x_stride + k]
  void (*products_f32)(const float* w, size_t w_stride, size_t rows, const float* x, size_t x_stride,
                       size_t tokens, size_t columns, float* out, size_t out_stride);
  /// The same on opened weights and quantised activations; products are summed as integers per 4 values.
  void (*products_int8)(const OpenRows& w, size_t rows, bool has_mins, const Int8Rows& x, size_t tokens,
                        float* out, size_t out_stride);
  /// out[t * out_stride + d] += sum over j, in order, of p[t * p_stride + j] * v[j * v_stride + d]
  void (*weighted_rows)(const float* p, size_t p_stride, size_t tokens, const float* v, size_t v_stride,
                        size_t rows, size_t columns, float* out, size_t out_stride);
};

/// The widest instruction set that this build has and this processor runs. `limit` 0: any; for tests: 1 only
/// the portable one, 2 up to AVX2.
const Simd& choose_simd(int limit = 0);

/// True if a packed type has a minimum beside its scale (Q4_1, Q5_1, Q2_K, Q4_K, Q5_K).
bool has_mins(DType dtype);
/// True for the types that open_row takes.
bool opens_to_int8(DType dtype);

}  // namespace doppler::cpu
