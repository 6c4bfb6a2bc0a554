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

/// magnitude times cos and sin of position * inv_freq[i] for each row: angles[row * 2 * pairs + 2 * i] and
/// the one after.
void rope_angles(std::span<const float> inv_freq, float magnitude, uint32_t first_position, uint32_t rows,
                 std::span<float> angles);

/// Rotates the first 2 * pairs columns of each group of `group` columns; the rest is copied.
void rope(ThreadPool& pool, const Rows& in, std::span<const float> angles, uint32_t pairs, uint32_t group,
          bool interleaved, const Rows& out);

/// out = (in - mean) * rsqrt(variance + eps) * weight + bias over each row.
void layer_norm(ThreadPool& pool, const Rows& in, std::span<const float> weight, std::span<const float> bias,
                float eps, const Rows& out);

/// act(x) of every kind but kSwigluClamped.
float activate(graph::Activation activation, float x);

/// Op::kGatedAct, with the node's group, layout and numbers.
void gated_act(ThreadPool& pool, const Rows& in, const graph::Node& node, const Rows& out);

/// out = act(in)
void act(ThreadPool& pool, const Rows& in, graph::Activation activation, const Rows& out);

/// Adds bias[i] to column i of every row.
void add_bias(ThreadPool& pool, std::span<const float> bias, const Rows& out);

/// out = a * b; b of width 1 multiplies the whole row.
void mul(ThreadPool& pool, const Rows& a, const Rows& b, const Rows& out);

/// out = the mean of all rows of `in`.
void mean_rows(const Rows& in, const Rows& out);

/// out = in / max(|in|, eps) over each row.
void l2_norm(const Rows& in, float eps, const Rows& out);

void add(ThreadPool& pool, const Rows& a, const Rows& b, const Rows& out);

/// out = cap * tanh(in / cap)
void softcap(ThreadPool& pool, const Rows& in, float cap, const Rows& out);

}  // namespace doppler::cpu
