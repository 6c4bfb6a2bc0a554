#include "kernels/attention/plan.h"

#include <algorithm>

#include "kernels/common/record.h"

namespace doppler::kernels {
namespace {

constexpr uint32_t kKeyTile = 64;
constexpr uint32_t kMaxSplits = 64;
constexpr uint32_t kSplitRows = 4;  // most rows that the split form takes

}  // namespace

uint32_t attention_split_rows() { return kSplitRows; }
uint32_t attention_max_splits() { return kMaxSplits; }

AttentionPlan plan_attention(const AttentionShape& shape, bool may_split, const gpu::Caps& caps) {
  AttentionPlan plan;
  plan.key_tile = kKeyTile;
  plan.workgroup = 64;
  const uint32_t pairs = shape.rows * (shape.heads / shape.kv_heads);
  // A key read once serves every query of the tile, but a workgroup too few leaves cores idle: two software
  // threads want 4 workgroups, a GPU wants a hundred, which it gets from splits where the rows are few.
  const bool split = may_split && caps.hardware && shape.rows <= kSplitRows;
  const uint32_t wanted = caps.hardware ? 100 : 4;
  plan.columns = static_cast<uint32_t>(ceil_div(shape.head_dim, 256));
  plan.query_tile = 8;
  while (plan.query_tile * plan.columns > 8) plan.query_tile /= 2;  // sums a thread holds
  while (plan.query_tile > 1 && plan.query_tile / 2 >= pairs) plan.query_tile /= 2;
  while (!split && plan.query_tile > 1 && ceil_div(pairs, plan.query_tile) * shape.kv_heads < wanted)
    plan.query_tile /= 2;
  const uint32_t tiles = static_cast<uint32_t>(ceil_div(pairs, plan.query_tile));

  // Splits are cut at fixed positions: where a cut lies depends on the last position alone.
  const uint32_t key_tiles = (shape.position + shape.rows - 1) / kKeyTile + 1;
  plan.splits = 1;
  if (split) {
    const uint32_t parts = std::max(1u, wanted * 2 / std::max(1u, tiles * shape.kv_heads));
    plan.splits = std::min({parts, key_tiles, kMaxSplits});
  }
  const uint32_t tiles_a_split = static_cast<uint32_t>(ceil_div(key_tiles, plan.splits));
  plan.splits = static_cast<uint32_t>(ceil_div(key_tiles, tiles_a_split));
  plan.split_keys = tiles_a_split * kKeyTile;
  if (plan.splits > 1)
    plan.scratch_bytes = uint64_t{shape.rows} * shape.heads * plan.splits * (shape.head_dim + 2) * 4;
  plan.grid = {tiles, shape.kv_heads, plan.splits};
  plan.reason = fmt::format("{} queries a KV head, {} key tiles", pairs, key_tiles);
  return plan;
}

}  // namespace doppler::kernels
