#pragma once
// out = [in * w0^T | in * w1^T | ...] on packed weights, opened row by row as they are used.
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "base/thread_pool.h"
#include "exec/cpu/ops.h"
#include "exec/cpu/simd.h"
#include "graph/graph.h"
#include "graph/weights.h"

namespace doppler::cpu {

struct LinearWeight {
  const graph::Weight* weight;
  const graph::WeightData* data;
};

/// Buffers that linear() keeps between calls: the quantised activations.
struct LinearScratch {
  std::vector<int8_t> q;
  std::vector<float> scales, sums;
};

/// Weights of packed types multiply int8 activations when `int8` is set; all else is f32. Threads take
/// neighbouring rows of the stacked weights; each row is opened once and used for every row of `in`.
void linear(ThreadPool& pool, const Simd& simd, const Rows& in, std::span<const LinearWeight> weights,
            bool int8, LinearScratch& scratch, const Rows& out);

/// The f32 values of one row of a weight of any runnable type.
void read_row(const Simd& simd, const LinearWeight& weight, uint32_t row, float* out);

}  // namespace doppler::cpu
