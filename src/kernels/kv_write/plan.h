#pragma once
#include <array>
#include <cstdint>
#include <string>

#include "gpu/device.h"

namespace doppler::kernels {

/// Mirrors Params in kv_write.wgsl.
struct KvWriteParams {
  uint32_t rows, width, position, grid_x;
  uint32_t k_offset, k_stride, v_offset, v_stride;
};
static_assert(sizeof(KvWriteParams) == 32);

struct KvWritePlan {
  uint32_t workgroup = 64;
  std::array<uint32_t, 3> grid{};
  std::string reason;
};

KvWritePlan plan_kv_write(uint32_t rows, uint32_t width, const gpu::Caps& caps);

}  // namespace doppler::kernels
