#pragma once
// Packed weight blocks <-> f32, the plain reference form. Layouts are ggml's (GGUF specification).
#include <cstddef>
#include <cstdint>
#include <span>

#include "base/dtype.h"

namespace doppler {

/// Expands `n` values (a multiple of the block size) of a runnable dtype. `src` holds n/block_elems blocks.
void dequantize(DType dtype, const std::byte* src, size_t n, float* dst);

/// True if quantize() can write this dtype.
bool can_quantize(DType dtype);

/// Packs `n` values (a multiple of the block size) into blocks at `dst`. f32, f16, bf16 round to nearest
/// even.
void quantize(DType dtype, const float* src, size_t n, std::byte* dst);

}  // namespace doppler
