#pragma once
#include <array>
#include <cstdint>
#include <string>
#include <string_view>

#include "base/dtype.h"
#include "gpu/device.h"

namespace doppler::kernels {

enum class LinearKernel : uint8_t { kMatvec, kMatmat };
std::string_view linear_kernel_name(LinearKernel kernel);  // "matvec", "matmat"

/// Mirrors Params in linear/linear_io.wgsl.
struct LinearParams {
  uint32_t x_rows, columns, groups, w_rows;
  uint32_t x_offset, x_stride, out_offset, out_stride;
  uint32_t lo_words, hi_words, scale_words, super_words;   // a row
  uint32_t scale_start, super_start, grid_x, bias_offset;  // starts: words from the beginning of aux
};
static_assert(sizeof(LinearParams) == 64);

/// What choosing a kernel depends on.
struct LinearShape {
  DType dtype = DType::kF32;
  uint32_t x_rows = 1, columns = 0, w_rows = 0;
  bool int8 = false;    // x is quantised
  bool aligned = true;  // x can be read four columns at a time
  bool bias = false;
};

struct LinearPlan {
  LinearKernel kernel = LinearKernel::kMatvec;
  uint32_t workgroup = 64;
  uint32_t team = 8;  // matvec: threads that share a dot product
  uint32_t rows_a_thread =
      4;                     // matvec: weight rows a thread accumulates at once; matmat: weight rows a thread
  uint32_t x_rows_tile = 1;  // x rows a workgroup takes
  uint32_t w_rows_tile = 32;  // weight rows a workgroup takes
  bool subgroups = false;
  std::array<uint32_t, 3> grid{};
  std::string reason;
};

/// Most x rows the matrix-vector kernel takes; above it the tiled kernel is chosen.
inline constexpr uint32_t kMatvecRows = 4;

LinearPlan plan_linear(const LinearShape& shape, const gpu::Caps& caps);
/// The same with the kernel pinned (an override, or a test).
LinearPlan plan_linear_as(LinearKernel kernel, const LinearShape& shape, const gpu::Caps& caps);

/// True if int8 activations can be used with this weight type (the quantised ones).
bool linear_takes_int8(DType dtype);

}  // namespace doppler::kernels
