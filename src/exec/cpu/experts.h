#pragma once
// A mixture of experts on the CPU: routing, products with the chosen experts' weights, their weighted sum.
#include <cstdint>
#include <span>
#include <vector>

#include "base/thread_pool.h"
#include "exec/cpu/linear.h"
#include "exec/cpu/ops.h"
#include "exec/cpu/simd.h"
#include "graph/graph.h"

namespace doppler::cpu {

/// Op::kRoute: in [rows, experts] -> out [rows, 2 * top_k], expert numbers and then their weights.
void route(ThreadPool& pool, const Rows& in, uint32_t top_k, graph::Routing routing, const Rows& out);

/// A stack of expert weights, and its bias as f32 [experts, rows] or empty.
struct ExpertWeight {
  const graph::Weight* weight;
  std::span<const graph::WeightData> data;  // one an expert
  std::span<const float> bias;
};

/// Buffers that expert_linear() keeps between calls.
struct ExpertScratch {
  std::vector<float> in, out;
  LinearScratch linear;
};

/// Op::kExpertLinear. The rows of a pass are grouped by expert, so each chosen expert's weights are read
/// once.
void expert_linear(ThreadPool& pool, const Simd& simd, const Rows& in, const Rows& routes, uint32_t top_k,
                   std::span<const ExpertWeight> weights, bool int8, ExpertScratch& scratch, const Rows& out);

/// Op::kExpertSum.
void expert_sum(ThreadPool& pool, const Rows& in, const Rows& routes, uint32_t top_k, const Rows& out);

}  // namespace doppler::cpu
