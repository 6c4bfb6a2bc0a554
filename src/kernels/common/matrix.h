#pragma once
// How kernels see activations: f32 matrices, or column slices of them, inside GPU buffers.
#include <cstdint>

#include "gpu/device.h"

namespace doppler::kernels {

/// Element (r, c) is float number `offset + r * stride + c` of `buffer`. A column slice is a Matrix whose
/// offset and width name the columns and whose stride is the whole row.
struct Matrix {
  const gpu::Buffer* buffer = nullptr;
  uint64_t offset = 0;  // in floats
  uint32_t rows = 0, width = 0;
  uint32_t stride = 0;  // floats from one row to the next
};

/// A whole buffer as rows x width, from its first byte.
inline Matrix matrix(const gpu::Buffer& buffer, uint32_t rows, uint32_t width) {
  return {&buffer, 0, rows, width, width};
}

/// Columns [first, first + width) of `m`.
inline Matrix columns(Matrix m, uint32_t first, uint32_t width) {
  m.offset += first;
  m.width = width;
  return m;
}

}  // namespace doppler::kernels
