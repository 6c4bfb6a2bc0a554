#include "exec/cpu/attention.h"

#include <algorithm>
#include <cmath>
#include <vector>

namespace doppler::cpu {
namespace {

constexpr uint32_t kTaskRows = 16;  // query rows that share one pass over the keys
constexpr uint32_t kTileKeys = 64;  // keys opened together; divides CpuKvCache::kBlockPositions

// A tile of one head's keys or values as f32 rows: in place where the cache is f32.
struct Tile {
  const float* data;
  size_t stride;
};

Tile open_tile(const Simd& simd, const CpuKvCache& kv, const std::byte* rows, uint32_t width, uint32_t count,
               uint32_t offset, uint32_t head_dim, std::vector<float>& scratch) {
  if (kv.type() == KvType::kF32) return {reinterpret_cast<const float*>(rows) + offset, width};
  for (uint32_t i = 0; i < count; ++i)
    simd.f16_to_f32(rows + 2 * (static_cast<size_t>(i) * width + offset), head_dim,
                    scratch.data() + static_cast<size_t>(i) * head_dim);
  return {scratch.data(), head_dim};
}

// scores[begin, end) become probabilities, what lies outside within [0, count) becomes zero.
// `sink` takes part in the sum alone; -infinity: none.
void softmax(float* scores, size_t count, size_t begin, size_t end, float scale, float cap, float sink) {
  float largest = sink;
  for (size_t j = begin; j < end; ++j) {
    scores[j] *= scale;
    if (cap > 0) scores[j] = cap * std::tanh(scores[j] / cap);
    largest = std::max(largest, scores[j]);
  }
  double sum = std::exp(sink - largest);
  for (size_t j = begin; j < end; ++j) {
    scores[j] = std::exp(scores[j] - largest);
    sum += scores[j];
  }
  const auto inverse = static_cast<float>(1.0 / sum);
  for (size_t j = begin; j < end; ++j) scores[j] *= inverse;
  std::fill(scores, scores + begin, 0.0f);
  std::fill(scores + end, scores + count, 0.0f);
}

// Heads [head, head + heads), all of one KV head, for rows [row, row + rows).
struct Task {
  uint32_t row, rows, head, heads;
};

void run_task(const Simd& simd, const Rows& q, const CpuKvCache& kv, uint32_t first_position,
              const AttentionParams& p, uint32_t heads_per_kv, const Task& task, const Rows& out) {
  const auto begin_of = [&](uint32_t row) -> uint32_t {
    const uint32_t position = first_position + row;
    return p.window > 0 && position + 1 > p.window ? position + 1 - p.window : 0;
  };
  const uint32_t begin = begin_of(task.row) / kTileKeys * kTileKeys;
  const uint32_t end = first_position + (p.causal ? task.row + task.rows : q.rows);
  const size_t range = end - begin;
  const uint32_t width = kv.width(p.kv_layer), kv_offset = task.head / heads_per_kv * p.head_dim;
  std::vector<float> tile_scratch(static_cast<size_t>(kTileKeys) * p.head_dim);
  std::vector<float> scores(range * task.rows * task.heads);  // [heads, rows, range]
  const auto scores_of = [&](uint32_t head) { return scores.data() + head * task.rows * range; };
  const auto head_data = [&](const Rows& rows, uint32_t head) {
    return rows.row(task.row) + static_cast<size_t>(task.head + head) * p.head_dim;
  };

  for (uint32_t key = begin; key < end; key += kTileKeys) {
    const uint32_t count = std::min(kTileKeys, end - key);
    const Tile keys =
        open_tile(simd, kv, kv.keys(p.kv_layer, key), width, count, kv_offset, p.head_dim, tile_scratch);
    for (uint32_t h = 0; h < task.heads; ++h)
      simd.products_f32(keys.data, keys.stride, count, head_data(q, h), q.stride, task.rows, p.head_dim,
                        scores_of(h) + (key - begin), range);
  }
  for (uint32_t h = 0; h < task.heads; ++h) {
    for (uint32_t r = 0; r < task.rows; ++r) {
      const uint32_t row = task.row + r;
      const uint32_t row_end = p.causal ? first_position + row + 1 : end;
      softmax(scores_of(h) + r * range, range, begin_of(row) - begin, row_end - begin, p.scale, p.softcap,
              p.sinks.empty() ? -INFINITY : p.sinks[task.head + h]);
      std::fill_n(head_data(out, h) + r * out.stride, p.head_dim, 0.0f);
    }
  }
  for (uint32_t key = begin; key < end; key += kTileKeys) {
    const uint32_t count = std::min(kTileKeys, end - key);
    const Tile values =
        open_tile(simd, kv, kv.values(p.kv_layer, key), width, count, kv_offset, p.head_dim, tile_scratch);
    for (uint32_t h = 0; h < task.heads; ++h)
      simd.weighted_rows(scores_of(h) + (key - begin), range, task.rows, values.data, values.stride, count,
                         p.head_dim, head_data(out, h), out.stride);
  }
}

}  // namespace

void attention(ThreadPool& pool, const Simd& simd, const Rows& q, const CpuKvCache& kv,
               uint32_t first_position, const AttentionParams& params, const Rows& out) {
  const uint32_t heads = q.width / params.head_dim, heads_per_kv = heads / params.kv_heads;
  const uint32_t row_tasks = (q.rows + kTaskRows - 1) / kTaskRows;
  // Heads of a KV head share the opening of its keys, unless that leaves threads without work.
  const uint32_t whole_tasks = params.kv_heads * row_tasks;
  const uint32_t heads_per_task = whole_tasks >= pool.size() ? heads_per_kv : 1;
  const uint32_t parts = heads_per_kv / heads_per_task;
  const size_t tasks = static_cast<size_t>(whole_tasks) * parts;
  pool.parallel_for(tasks, 1, [&](size_t begin, size_t end) {
    for (size_t i = begin; i < end; ++i) {
      const auto row_task = static_cast<uint32_t>(i / (params.kv_heads * parts));
      const auto head_task = static_cast<uint32_t>(i % (params.kv_heads * parts));
      const uint32_t row = row_task * kTaskRows;
      run_task(simd, q, kv, first_position, params, heads_per_kv,
               {row, std::min(kTaskRows, q.rows - row), head_task * heads_per_task, heads_per_task}, out);
    }
  });
}

}  // namespace doppler::cpu
