#pragma once
// Causal attention of the newest rows over the cache, with grouped heads, a sliding window and a soft cap.
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
};

/// q and out are [rows, heads * head_dim]; row r stands at position first_position + r, whose keys and values
/// are in the cache already.
void attention(ThreadPool& pool, const Simd& simd, const Rows& q, const CpuKvCache& kv,
               uint32_t first_position, const AttentionParams& params, const Rows& out);

}  // namespace doppler::cpu
