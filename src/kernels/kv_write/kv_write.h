#pragma once
// Appends rows of K and V to a layer's cache.
#include <cstdint>
#include <string_view>

#include "kernels/common/matrix.h"
#include "kernels/kv_write/plan.h"

namespace doppler::kernels {

/// Element type of a cache. f16 is stored as pairs in 32-bit words and needs no shader-f16.
enum class KvElement : uint8_t { kF32, kF16 };

/// K and V of one layer: two buffers, each [capacity, width] of `element`.
struct KvBuffers {
  const gpu::Buffer* k = nullptr;
  const gpu::Buffer* v = nullptr;
  uint32_t width = 0;     // kv_heads * head_dim; a multiple of 8
  uint32_t capacity = 0;  // positions that fit
  KvElement element = KvElement::kF16;
};

inline uint64_t kv_bytes(uint32_t capacity, uint32_t width, KvElement element) {
  return uint64_t{capacity} * width * (element == KvElement::kF16 ? 2 : 4);
}

/// kBadInput unless both buffers hold the capacity, `positions` fit, and the binding limit allows it.
Result<void> check_kv(std::string_view op, const KvBuffers& cache, uint64_t positions, const gpu::Caps& caps);

struct KvWriteArgs {
  Matrix k, v;  // [rows, cache.width]; may be slices of the same buffer
  KvBuffers cache;
  uint32_t position = 0;  // of the first row
};

/// A value beyond f16's range becomes infinity in an f16 cache: it is not clamped, so that it shows.
Result<void> record_kv_write(gpu::Device& device, gpu::Commands& commands, const KvWriteArgs& args);
Result<void> run_kv_write(gpu::Device& device, const KvWriteArgs& args);

}  // namespace doppler::kernels
