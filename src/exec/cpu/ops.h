#pragma once
// The plain ops over rows of f32: `rows` rows, `stride` floats apart, of which a view's columns count.
// Sums are taken in double, so results do not depend on how rows are shared between threads.
#include <cstdint>
#include <span>

#include "base/thread_pool.h"
#include "graph/graph.h"

namespace doppler::cpu {

/// Columns [0, width) of each row, the first row at `data`.
struct Rows {
  float* data = nullptr;
  uint64_t stride = 0;
  uint32_t rows = 0, width = 0;
  float* row(uint32_t i) const { return data + i * stride; }
};

/// out = in * rsqrt(mean(in^2) + eps) * (weight + offset) over each group of weight.size() columns.
void rms_norm(ThreadPool& pool, const Rows& in, std::span<const float> weight, float offset, float eps,
              const Rows& out);

/// cos and sin of position * inv_freq[i] for each row: angles[row * 2 * pairs + 2 * i] and the one after.
void rope_angles(const graph::RopeTable& table, uint32_t first_position, uint32_t rows,
                 std::span<float> angles);

/// Rotates the first 2 * pairs columns of each group of `group` columns; the rest is copied.
void rope(ThreadPool& pool, const Rows& in, std::span<const float> angles, uint32_t pairs, uint32_t group,
          bool interleaved, const Rows& out);

/// in = [gate | up], out = act(gate) * up.
void gated_act(ThreadPool& pool, const Rows& in, graph::Activation activation, const Rows& out);

void add(ThreadPool& pool, const Rows& a, const Rows& b, const Rows& out);

/// out = cap * tanh(in / cap)
void softcap(ThreadPool& pool, const Rows& in, float cap, const Rows& out);

}  // namespace doppler::cpu
