#include "exec/cpu/linear.h"

#include <algorithm>
#include <cstring>

#include "base/half.h"

namespace doppler::cpu {
namespace {

constexpr uint32_t kTileRows = 16;  // opened together: 16 rows of 2,048 f32 are 128 KiB, half of an L2

size_t padded_columns(size_t columns) { return (columns + kQuantGroup - 1) / kQuantGroup * kQuantGroup; }

// Opened rows of one thread.
struct TileScratch {
  std::vector<int8_t> q;
  std::vector<float> scales, mins, f32;

  TileScratch(size_t columns, bool wants_f32)
      : q(kTileRows * columns),
        scales(kTileRows * columns / 4),
        mins(kTileRows * columns / kMinGroup),
        f32(wants_f32 ? kTileRows * columns : 0) {}

  OpenRows rows(size_t columns) { return {q.data(), scales.data(), mins.data(), columns}; }
};

const std::byte* packed_row(const LinearWeight& w, uint32_t row) {
  return w.data->bytes.data() + row * w.data->row_bytes;
}

// Row `row` of a weight into f32, by way of slot `slot` of `open` where its type is packed.
void expand_row(const Simd& simd, const LinearWeight& w, uint32_t row, const OpenRows& open, uint32_t slot,
                float* out) {
  const uint32_t columns = w.weight->columns;
  const std::byte* packed = packed_row(w, row);
  switch (w.weight->dtype) {
    case DType::kF32:
      std::memcpy(out, packed, columns * sizeof(float));
      return;
    case DType::kF16:
      simd.f16_to_f32(packed, columns, out);
      return;
    case DType::kBF16:
      for (uint32_t i = 0; i < columns; ++i) {
        uint16_t narrow;
        std::memcpy(&narrow, packed + 2ull * i, sizeof narrow);
        out[i] = bf16_to_f32(narrow);
      }
      return;
    default:
      simd.open_row(w.weight->dtype, packed, open.columns / kQuantGroup, open, slot);
      simd.open_to_f32(open, slot, columns, out);
  }
}

// Rows [begin, end) of one weight; their results start at column `column` of `out`.
void weight_rows(const Simd& simd, const Rows& in, const LinearWeight& w, uint32_t begin, uint32_t end,
                 bool int8, const Int8Rows& quantised, TileScratch& scratch, const Rows& out, size_t column) {
  const size_t columns = padded_columns(w.weight->columns);
  const OpenRows open = scratch.rows(columns);
  for (uint32_t row = begin; row < end; row += kTileRows) {
    const uint32_t count = std::min(kTileRows, end - row);
    float* to = out.data + column + (row - begin);
    if (int8 && opens_to_int8(w.weight->dtype)) {
      for (uint32_t i = 0; i < count; ++i)
        simd.open_row(w.weight->dtype, packed_row(w, row + i), columns / kQuantGroup, open, i);
      simd.products_int8(open, count, has_mins(w.weight->dtype), quantised, in.rows, to, out.stride);
    } else {
      for (uint32_t i = 0; i < count; ++i)
        expand_row(simd, w, row + i, open, i, scratch.f32.data() + i * columns);
      simd.products_f32(scratch.f32.data(), columns, count, in.data, in.stride, in.rows, w.weight->columns,
                        to, out.stride);
    }
  }
}

Int8Rows quantise(ThreadPool& pool, const Simd& simd, const Rows& in, LinearScratch& scratch) {
  const size_t columns = padded_columns(in.width);
  scratch.q.resize(in.rows * columns);
  scratch.scales.resize(in.rows * columns / kQuantGroup);
  scratch.sums.resize(in.rows * columns / kMinGroup);
  const Int8Rows rows{scratch.q.data(), scratch.scales.data(), scratch.sums.data(), columns};
  pool.parallel_for(in.rows, 16, [&](size_t begin, size_t end) {
    for (size_t r = begin; r < end; ++r)
      simd.quantize_row(in.row(static_cast<uint32_t>(r)), in.width, rows, r);
  });
  return rows;
}

}  // namespace

void linear(ThreadPool& pool, const Simd& simd, const Rows& in, std::span<const LinearWeight> weights,
            bool int8, LinearScratch& scratch, const Rows& out) {
  bool any_packed = false, any_f32 = false;
  size_t total_rows = 0;
  for (const LinearWeight& w : weights) {
    const bool packed = int8 && opens_to_int8(w.weight->dtype);
    any_packed |= packed;
    any_f32 |= !packed;
    total_rows += w.weight->rows;
  }
  const Int8Rows quantised = any_packed ? quantise(pool, simd, in, scratch) : Int8Rows{};

  pool.parallel_for(total_rows, 4 * kTileRows, [&](size_t begin, size_t end) {
    TileScratch tile(padded_columns(in.width), any_f32);
    size_t first = 0;  // of the current weight, counted over the stack
    for (const LinearWeight& w : weights) {
      const size_t last = first + w.weight->rows;
      const size_t from = std::max(begin, first), to = std::min(end, last);
      if (from < to)
        weight_rows(simd, in, w, static_cast<uint32_t>(from - first), static_cast<uint32_t>(to - first), int8,
                    quantised, tile, out, from);
      first = last;
    }
  });
}

void read_row(const Simd& simd, const LinearWeight& weight, uint32_t row, float* out) {
  const size_t columns = padded_columns(weight.weight->columns);
  TileScratch scratch(columns, false);
  expand_row(simd, weight, row, scratch.rows(columns), 0, out);
}

}  // namespace doppler::cpu
