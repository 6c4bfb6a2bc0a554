#pragma once
// How packed weights lie on the GPU, and the packer that writes them chunk by chunk at load time.
//
// A weight part of `rows` x `columns` is one buffer of 4-byte words in up to four planes, each [rows, its
// words]:
//   lo     the quants of 32-value groups: 2 bits a value (2 words a group), 4 bits (4), 8 bits (8),
//          f16 or bf16 (16), f32 (32); a row fills whole vec4s
//   hi     the third bit of Q3_K or the fifth of 5-bit types (1 word a group), two bits of Q6_K (2)
//   scale  16 bits a group: f16 scale, or 6-bit scale and min, or two int8 scales, or two 4-bit scales
//          and mins; 32 bits for Q4_1 and Q5_1 (d, m); 8 for MXFP4. Q3_K and IQ4_XS: 6-bit scales, 4 a
//          word, with f16 d in the top bytes of the first two words of every 256 values
//   super  1 word per 256 values for the other K types: f16 d and dmin
// Value i of a group is s * q + m with q an int8; IQ4 and MXFP4 keep codes for q. Planes start at multiples
// of 256 bytes, so that lo can be bound as vec4 and the rest ("aux") as words. Only ceil(columns / 32) groups
// a row are kept: padding columns of the file (whole blocks) are dropped. The buffer is at most 3 % larger
// than the blocks of the file plus the padding of planes (and of rows that are not whole groups).
#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "base/dtype.h"
#include "gpu/device.h"

namespace doppler::kernels {

inline constexpr uint32_t kGroup = 32;

/// One plane: `words` a row, from byte `offset` of the buffer. words 0: the type has no such plane.
struct Plane {
  uint64_t offset = 0;
  uint32_t words = 0;
};

struct PackedLayout {
  DType dtype = DType::kF32;
  uint32_t rows = 0, columns = 0;
  uint32_t groups = 0;  // ceil(columns / 32)
  Plane lo, hi, scale, super;
  uint64_t aux_offset = 0;  // where the planes after lo begin; `bytes` if there are none
  uint64_t bytes = 0;
};

/// Where everything goes. `dtype` must be runnable (base/dtype.h).
PackedLayout packed_layout(DType dtype, uint32_t rows, uint32_t columns);

/// Most rows whose layout has at most `max_bytes`, at most `rows`; 0 if not even one fits. A tensor above the
/// adapter's binding limit becomes several parts of this many rows: use caps.max_binding_bytes.
uint32_t rows_per_part(DType dtype, uint32_t rows, uint32_t columns, uint64_t max_bytes);

/// Words for the buffer from byte `offset`.
struct PackedSegment {
  uint64_t offset = 0;
  std::vector<uint32_t> words;
};

/// Packs rows [first, first + count) of the part. `src` holds `count` file rows of `row_bytes` each (which
/// may cover more than layout.columns values). One segment per plane; pass the same `out` again to reuse its
/// memory.
void pack_rows(const PackedLayout& layout, uint32_t first, uint32_t count, std::span<const std::byte> src,
               uint64_t row_bytes, std::array<PackedSegment, 4>& out);

/// A weight part on the GPU: rows [first_row, first_row + layout.rows) of a tensor.
struct PackedWeight {
  const gpu::Buffer* buffer = nullptr;
  PackedLayout layout;
  uint32_t first_row = 0;
};

/// Packs the whole part from `src` (layout.rows file rows) into `buffer` (layout.bytes long), about 1 MiB at
/// a time.
Result<void> upload_packed(gpu::Device& device, const gpu::Buffer& buffer, const PackedLayout& layout,
                           std::span<const std::byte> src, uint64_t row_bytes);

}  // namespace doppler::kernels
