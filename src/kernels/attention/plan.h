#pragma once
#include <array>
#include <cstdint>
#include <string>

#include "gpu/device.h"

namespace doppler::kernels {

/// The largest head: what 16 KB of workgroup memory hold for two queries.
inline constexpr uint32_t kMaxHeadDim = 1024;

/// Mirrors Params in attention.wgsl and attention_combine.wgsl.
struct AttentionParams {
  uint32_t rows, heads, kv_heads, head_dim;
  uint32_t position, window, q_offset, q_stride;
  uint32_t out_offset, out_stride, splits, split_keys;
  float scale, softcap;
  uint32_t sink_base, pad = 0;
};
static_assert(sizeof(AttentionParams) == 64);

struct AttentionShape {
  uint32_t rows = 1, heads = 1, kv_heads = 1, head_dim = 64;
  uint32_t position = 0;  // of the first row
  uint32_t window = 0;    // 0: none
};

struct AttentionPlan {
  uint32_t query_tile = 1;  // (row, head) pairs that share a workgroup's pass over the keys
  uint32_t key_tile = 32;   // keys scored between two updates of the running maximum
  uint32_t workgroup = 64;
  uint32_t columns = 1;     // times four columns of a head that a thread sums up
  uint32_t splits = 1;      // parts the keys are cut into; above 1 a second dispatch combines them
  uint32_t split_keys = 0;  // keys a part has
  uint64_t scratch_bytes = 0;
  std::array<uint32_t, 3> grid{};
  std::string reason;
};

/// Most rows that the split form takes, and most splits.
uint32_t attention_split_rows();
uint32_t attention_max_splits();

/// `may_split`: scratch memory is at hand.
AttentionPlan plan_attention(const AttentionShape& shape, bool may_split, const gpu::Caps& caps);

}  // namespace doppler::kernels
