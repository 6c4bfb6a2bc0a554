#pragma once
// Attention of the newest rows over the cache: causal or not, with grouped heads, a sliding window, a soft
// cap and sinks.
#include <span>

#include "base/thread_pool.h"
#include "exec/cpu/kv_cache.h"
#include "exec/cpu/ops.h"
#include "exec/cpu/simd.h"
#include "graph/graph.h"

namespace doppler::cpu {

struct AttentionParams {
  uint32_t kv_layer = 0;
  uint32_t kv_heads = 0, head_dim = 0;
  uint32_t window = 0;  // 0: all positions; else position j is seen from i when i - j < window
  float scale = 1, softcap = 0;
  bool causal = true;                 // false: every row sees all positions; `window` must be 0
  std::span<const float> sinks = {};  // one a head, or none: joins the softmax's sum and brings no value
};

/// q and out are [rows, heads * head_dim]; row r stands at position first_position + r, whose keys and values
/// are in the cache already.
void attention(ThreadPool& pool, const Simd& simd, const Rows& q, const CpuKvCache& kv,
               uint32_t first_position, const AttentionParams& params, const Rows& out);

}  // namespace doppler::cpu
