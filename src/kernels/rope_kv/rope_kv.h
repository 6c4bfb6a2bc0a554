#pragma once
// The q, k and v of a layer made ready for attention in one dispatch: norms of q and k heads, RoPE of both, k
// and v appended to the cache. The same as rms_norm, rope and kv_write one after the other.
#include <cstdint>
#include <optional>

#include "kernels/common/matrix.h"
#include "kernels/kv_write/kv_write.h"
#include "kernels/rope_kv/plan.h"

namespace doppler::kernels {

/// RMS norms of heads: weights f32 [head_dim] each, floats into one buffer.
struct HeadNorms {
  const gpu::Buffer* weights = nullptr;
  uint32_t q_base = 0, k_base = 0;
  float eps = 1e-6f, weight_offset = 0;
};

struct RopeKvArgs {
  Matrix x;  // [rows, (q_heads + 2 kv_heads) * head_dim]: q, k, v; q changes in place
  uint32_t q_heads = 0, kv_heads = 0, head_dim = 0;
  std::optional<HeadNorms> norms;      // nullopt: none
  const gpu::Buffer* table = nullptr;  // as rope's: (cos, sin) [positions, rotary_dim / 2]
  uint32_t table_row = 0;              // of the first row
  uint32_t rotary_dim = 0;             // even, at most head_dim
  bool interleaved = false;
  KvBuffers cache;        // width kv_heads * head_dim
  uint32_t position = 0;  // of the first row
};

/// kBadInput for shapes that do not fit, and for heads that are no multiple of 8 or above 1,024 columns.
Result<void> record_rope_kv(gpu::Device& device, gpu::Commands& commands, const RopeKvArgs& args);
Result<void> run_rope_kv(gpu::Device& device, const RopeKvArgs& args);

}  // namespace doppler::kernels
