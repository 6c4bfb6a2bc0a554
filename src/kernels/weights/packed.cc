#include "kernels/weights/packed.h"

#include <algorithm>
#include <cstring>

#include "base/quant_blocks.h"

namespace doppler::kernels {
namespace {

constexpr uint64_t kPlaneAlign = 256;

uint16_t load16(const std::byte* at) {
  uint16_t v;
  std::memcpy(&v, at, sizeof v);
  return v;
}

uint32_t load32(const std::byte* at) {
  uint32_t v;
  std::memcpy(&v, at, sizeof v);
  return v;
}

uint8_t byte_at(const std::byte* at, size_t i) { return static_cast<uint8_t>(at[i]); }

/// Words of each plane one row takes.
struct RowWords {
  uint32_t lo = 0, hi = 0, scale = 0, super = 0;
};

RowWords row_words(DType dtype, uint32_t groups) {
  const uint32_t halves = (groups + 1) / 2, supers = (groups + 7) / 8;
  switch (dtype) {
    case DType::kF32:
      return {groups * 32};
    case DType::kF16:
    case DType::kBF16:
      return {groups * 16};
    case DType::kQ4_0:
      return {groups * 4, 0, halves};
    case DType::kQ4_1:
      return {groups * 4, 0, groups};
    case DType::kQ5_0:
      return {groups * 4, groups, halves};
    case DType::kQ5_1:
      return {groups * 4, groups, groups};
    case DType::kQ8_0:
      return {groups * 8, 0, halves};
    case DType::kIQ4_NL:
      return {groups * 4, 0, halves};
    case DType::kMXFP4:
      return {groups * 4, 0, (groups + 3) / 4};
    case DType::kQ2_K:
      return {halves * 4, 0, halves, supers};
    case DType::kQ3_K:
      return {halves * 4, groups, supers * 4};
    case DType::kIQ4_XS:
      return {groups * 4, 0, supers * 2};
    case DType::kQ4_K:
      return {groups * 4, 0, halves, supers};
    case DType::kQ5_K:
      return {groups * 4, groups, halves, supers};
    case DType::kQ6_K:
      return {groups * 4, groups * 2, halves, supers};
    default:
      return {};  // not runnable: packed_layout()'s precondition
  }
}

/// The words of one row in each plane, zero at the start.
struct RowOut {
  uint32_t *lo, *hi, *scale, *super;

  void scale16(uint32_t g, uint32_t bits) const { scale[g / 2] |= bits << (g % 2 * 16); }

  /// The low 2 bits of the 32 quants of a group.
  void pairs(uint32_t g, const uint8_t* q) const {
    for (uint32_t i = 0; i < 32; ++i)
      lo[g * 2 + i / 16] |= static_cast<uint32_t>(q[i] & 3) << (i % 4 * 8 + i % 16 / 4 * 2);
  }

  void hi_bit(uint32_t g, uint32_t i, uint32_t bit) const { hi[g] |= bit << (i % 4 * 8 + i / 4); }

  /// Writes the 32 quants of a group, `bits` (4 to 6) wide: low nibbles to lo, the rest to hi.
  void quants(uint32_t g, const uint8_t* q, int bits) const {
    for (uint32_t i = 0; i < 32; ++i) {
      const uint32_t word = i % 16 / 4, shift = i % 4 * 8 + i / 16 * 4;
      lo[g * 4 + word] |= static_cast<uint32_t>(q[i] & 15) << shift;
      if (bits == 5) hi_bit(g, i, q[i] >> 4 & 1);
      if (bits == 6)
        hi[g * 2 + i / 16] |= static_cast<uint32_t>(q[i] >> 4 & 3) << (i % 4 * 8 + i % 16 / 4 * 2);
    }
  }
};

/// Q4_0, Q5_0 (`flip`: the bit that turns q into two's complement of q - offset), Q4_1, Q5_1: 32 values a
/// block.
void pack_simple(const std::byte* src, uint32_t groups, DType dtype, const RowOut& out) {
  const DTypeInfo& info = dtype_info(dtype);
  const bool has_min = dtype == DType::kQ4_1 || dtype == DType::kQ5_1;
  const bool five = dtype == DType::kQ5_0 || dtype == DType::kQ5_1;
  const uint8_t flip = has_min ? 0 : (five ? 16 : 8);
  for (uint32_t g = 0; g < groups; ++g) {
    const std::byte* block = src + uint64_t{g} * info.block_bytes;
    if (has_min)
      out.scale[g] = load32(block);
    else
      out.scale16(g, load16(block));
    const std::byte* rest = block + (has_min ? 4 : 2);
    const uint32_t high = five ? load32(rest) : 0;
    const std::byte* nibbles = rest + (five ? 4 : 0);
    uint8_t q[32];
    for (uint32_t i = 0; i < 32; ++i) {
      const uint32_t low = byte_at(nibbles, i % 16) >> (i / 16 * 4) & 15u;
      q[i] = static_cast<uint8_t>((low | (high >> i & 1u) << 4) ^ flip);
    }
    out.quants(g, q, five ? 5 : 4);
  }
}

void pack_q8_0(const std::byte* src, uint32_t groups, const RowOut& out) {
  for (uint32_t g = 0; g < groups; ++g) {
    const std::byte* block = src + uint64_t{g} * 34;
    out.scale16(g, load16(block));
    std::memcpy(out.lo + g * 8, block + 2, 32);
  }
}

/// Q4_K and Q5_K: f16 d and dmin, 12 bytes of 6-bit scales, (32 bytes of fifth bits,) 128 bytes of nibbles.
void pack_k(const std::byte* src, uint32_t groups, bool five, const RowOut& out) {
  const uint64_t block_bytes = five ? 176 : 144;
  for (uint32_t g = 0; g < groups; ++g) {
    const std::byte* block = src + g / 8 * block_bytes;
    const uint32_t in = g % 8;
    if (in == 0) out.super[g / 8] = load32(block);
    const ScaleMin scale =
        unpack_scale_min(reinterpret_cast<const uint8_t*>(block + 4), static_cast<int>(in));
    out.scale16(g, static_cast<uint32_t>(scale.scale | scale.min << 8));
    const std::byte* high = block + 16;
    const std::byte* nibbles = block + (five ? 48 : 16) + in / 2 * 32;
    uint8_t q[32];
    for (uint32_t i = 0; i < 32; ++i) {
      const uint32_t low = byte_at(nibbles, i) >> (in % 2 * 4) & 15u;
      const uint32_t fifth = five ? (byte_at(high, i) >> in & 1u) << 4 : 0u;
      q[i] = static_cast<uint8_t>(low | fifth);
    }
    out.quants(g, q, five ? 5 : 4);
  }
}

/// Q6_K: 128 bytes of nibbles, 64 of upper bits, 16 int8 scales, f16 d.
void pack_6k(const std::byte* src, uint32_t groups, const RowOut& out) {
  for (uint32_t g = 0; g < groups; ++g) {
    const std::byte* block = src + uint64_t{g / 8} * 210;
    const uint32_t in = g % 8;
    if (in == 0) out.super[g / 8] = load16(block + 208);
    out.scale16(g, load16(block + 192 + in * 2));
    uint8_t q[32];
    for (uint32_t i = 0; i < 32; ++i) {
      const Q6KPlace place = q6_k_place(static_cast<int>(in * 32 + i));
      const int low = byte_at(block, static_cast<size_t>(place.low_byte)) >> place.low_shift & 15;
      const int high = byte_at(block + 128, static_cast<size_t>(place.high_byte)) >> place.high_shift & 3;
      q[i] = static_cast<uint8_t>((low | high << 4) ^ 32);
    }
    out.quants(g, q, 6);
  }
}

/// Q2_K: 16 bytes of 4-bit scales and mins, 64 bytes of bit pairs, f16 d and dmin.
void pack_2k(const std::byte* src, uint32_t groups, const RowOut& out) {
  for (uint32_t g = 0; g < groups; ++g) {
    const std::byte* block = src + uint64_t{g / 8} * 84;
    const uint32_t in = g % 8;
    if (in == 0) out.super[g / 8] = load32(block + 80);
    out.scale16(g, load16(block + in * 2));
    uint8_t q[32];
    for (uint32_t i = 0; i < 32; ++i) {
      const Bits2Place place = bits2_place(static_cast<int>(in * 32 + i));
      q[i] = static_cast<uint8_t>(byte_at(block + 16, static_cast<size_t>(place.byte)) >> place.shift & 3);
    }
    out.pairs(g, q);
  }
}

/// f16 d into the top bytes of the first two of a block's scale words.
void put_d(uint32_t d, uint32_t* scales) {
  scales[0] |= (d & 0xffu) << 24;
  scales[1] |= (d >> 8) << 24;
}

/// Q3_K: 32 bytes of third bits, 64 of bit pairs, 12 of 6-bit scales, f16 d.
void pack_3k(const std::byte* src, uint32_t groups, const RowOut& out) {
  for (uint32_t g = 0; g < groups; ++g) {
    const std::byte* block = src + uint64_t{g / 8} * 110;
    const uint32_t in = g % 8;
    uint32_t* scales = out.scale + g / 8 * 4;
    if (in == 0) put_d(load16(block + 108), scales);
    for (uint32_t half = 0; half < 2; ++half) {
      const int scale =
          unpack_q3_scale(reinterpret_cast<const uint8_t*>(block + 96), static_cast<int>(in * 2 + half));
      scales[in / 2] |= static_cast<uint32_t>(scale + 32) << (in % 2 * 12 + half * 6);
    }
    uint8_t q[32];
    for (uint32_t i = 0; i < 32; ++i) {
      const Bits2Place place = bits2_place(static_cast<int>(in * 32 + i));
      q[i] = static_cast<uint8_t>(byte_at(block + 32, static_cast<size_t>(place.byte)) >> place.shift & 3);
      out.hi_bit(g, i, (byte_at(block, i) >> in & 1u) ^ 1u);  // two's complement of q - 4
    }
    out.pairs(g, q);
  }
}

/// 16 bytes of codes, kept as they are.
void pack_codes(const std::byte* codes, uint32_t g, const RowOut& out) {
  std::memcpy(out.lo + g * 4, codes, 16);
}

/// IQ4_XS: f16 d, 2 + 4 bytes of 6-bit scales, 128 bytes of codes.
void pack_iq4_xs(const std::byte* src, uint32_t groups, const RowOut& out) {
  for (uint32_t g = 0; g < groups; ++g) {
    const std::byte* block = src + uint64_t{g / 8} * 136;
    const uint32_t in = g % 8;
    uint32_t* scales = out.scale + g / 8 * 2;
    if (in == 0) put_d(load16(block), scales);
    const int scale = unpack_iq4_scale(load16(block + 2), reinterpret_cast<const uint8_t*>(block + 4),
                                       static_cast<int>(in));
    scales[in / 4] |= static_cast<uint32_t>(scale + 32) << (in % 4 * 6);
    pack_codes(block + 8 + 16 * in, g, out);
  }
}

/// IQ4_NL: f16 d, 16 bytes of codes.
void pack_iq4_nl(const std::byte* src, uint32_t groups, const RowOut& out) {
  for (uint32_t g = 0; g < groups; ++g) {
    const std::byte* block = src + uint64_t{g} * 18;
    out.scale16(g, load16(block));
    pack_codes(block + 2, g, out);
  }
}

/// MXFP4: an exponent byte, 16 bytes of codes. Minus zero becomes zero.
void pack_mxfp4(const std::byte* src, uint32_t groups, const RowOut& out) {
  for (uint32_t g = 0; g < groups; ++g) {
    const std::byte* block = src + uint64_t{g} * 17;
    out.scale[g / 4] |= uint32_t{byte_at(block, 0)} << (g % 4 * 8);
    std::byte codes[16];
    for (uint32_t i = 0; i < 16; ++i) {
      uint32_t pair = byte_at(block, 1 + i);
      if ((pair & 15) == 8) pair &= 0xf0;
      if (pair >> 4 == 8) pair &= 0x0f;
      codes[i] = static_cast<std::byte>(pair);
    }
    pack_codes(codes, g, out);
  }
}

void pack_row(const PackedLayout& layout, const std::byte* src, const RowOut& out) {
  switch (layout.dtype) {
    case DType::kF32:
      std::memcpy(out.lo, src, uint64_t{layout.columns} * 4);
      return;
    case DType::kF16:
    case DType::kBF16:
      std::memcpy(out.lo, src, uint64_t{layout.columns} * 2);
      return;
    case DType::kQ8_0:
      return pack_q8_0(src, layout.groups, out);
    case DType::kQ2_K:
      return pack_2k(src, layout.groups, out);
    case DType::kQ3_K:
      return pack_3k(src, layout.groups, out);
    case DType::kIQ4_NL:
      return pack_iq4_nl(src, layout.groups, out);
    case DType::kIQ4_XS:
      return pack_iq4_xs(src, layout.groups, out);
    case DType::kMXFP4:
      return pack_mxfp4(src, layout.groups, out);
    case DType::kQ4_K:
    case DType::kQ5_K:
      return pack_k(src, layout.groups, layout.dtype == DType::kQ5_K, out);
    case DType::kQ6_K:
      return pack_6k(src, layout.groups, out);
    default:
      return pack_simple(src, layout.groups, layout.dtype, out);
  }
}

}  // namespace

PackedLayout packed_layout(DType dtype, uint32_t rows, uint32_t columns) {
  PackedLayout layout;
  layout.dtype = dtype;
  layout.rows = rows;
  layout.columns = columns;
  layout.groups = (columns + kGroup - 1) / kGroup;
  const RowWords words = row_words(dtype, layout.groups);
  uint64_t end = 0;
  const auto place = [&](uint32_t row_words_of_plane) {
    Plane plane{end, row_words_of_plane};
    end += (uint64_t{rows} * row_words_of_plane * 4 + kPlaneAlign - 1) / kPlaneAlign * kPlaneAlign;
    return plane;
  };
  layout.lo = place(words.lo);
  layout.aux_offset = end;
  layout.hi = place(words.hi);
  layout.scale = place(words.scale);
  layout.super = place(words.super);
  layout.bytes = end;
  return layout;
}

uint32_t rows_per_part(DType dtype, uint32_t rows, uint32_t columns, uint64_t max_bytes) {
  const RowWords words = row_words(dtype, (columns + kGroup - 1) / kGroup);
  const uint64_t row_bytes = uint64_t{words.lo + words.hi + words.scale + words.super} * 4;
  const uint64_t padding = 4 * kPlaneAlign;
  if (row_bytes == 0 || max_bytes < padding + row_bytes) return 0;
  return static_cast<uint32_t>(std::min<uint64_t>(rows, (max_bytes - padding) / row_bytes));
}

void pack_rows(const PackedLayout& layout, uint32_t first, uint32_t count, std::span<const std::byte> src,
               uint64_t row_bytes, std::array<PackedSegment, 4>& out) {
  const std::array<const Plane*, 4> planes{&layout.lo, &layout.hi, &layout.scale, &layout.super};
  for (size_t i = 0; i < planes.size(); ++i) {
    out[i].offset = planes[i]->offset + uint64_t{first} * planes[i]->words * 4;
    out[i].words.assign(uint64_t{count} * planes[i]->words, 0u);
  }
  for (uint64_t r = 0; r < count; ++r) {
    const RowOut row{out[0].words.data() + r * layout.lo.words, out[1].words.data() + r * layout.hi.words,
                     out[2].words.data() + r * layout.scale.words,
                     out[3].words.data() + r * layout.super.words};
    pack_row(layout, src.data() + r * row_bytes, row);
  }
}

Result<void> upload_packed(gpu::Device& device, const gpu::Buffer& buffer, const PackedLayout& layout,
                           std::span<const std::byte> src, uint64_t row_bytes) {
  if (src.size() < layout.rows * row_bytes || row_bytes < doppler::row_bytes(layout.dtype, layout.columns))
    return fail(ErrorCode::kBadInput, "[weights] {} rows of {} {} values wanted, got {} bytes in rows of {}",
                layout.rows, layout.columns, dtype_name(layout.dtype), src.size(), row_bytes);
  if (buffer.bytes() < layout.bytes)
    return fail(ErrorCode::kBadInput, "[weights] buffer of {} bytes wanted, got {}", layout.bytes,
                buffer.bytes());
  const uint32_t step = static_cast<uint32_t>(std::max<uint64_t>((1u << 20) / row_bytes, 1));
  std::array<PackedSegment, 4> segments;
  for (uint32_t first = 0; first < layout.rows; first += step) {
    const uint32_t count = std::min(step, layout.rows - first);
    pack_rows(layout, first, count, src.subspan(first * row_bytes, count * row_bytes), row_bytes, segments);
    for (const PackedSegment& segment : segments)
      if (!segment.words.empty())
        DOPPLER_CHECK_OK(device.write(buffer, segment.offset, std::as_bytes(std::span(segment.words))));
  }
  return {};
}

}  // namespace doppler::kernels
