#pragma once
// What a step of a pass must move and compute at least: the base of bandwidth and rate in a profile.
#include <cstdint>

#include "graph/graph.h"

namespace doppler {

struct StepCost {
  uint64_t bytes = 0;     // read and written, each once
  double operations = 0;  // multiplications and additions
};

/// Where the pass stands.
struct CostShape {
  uint32_t rows = 0;      // of the node's out
  uint32_t in_rows = 0;   // of its in
  uint32_t position = 0;  // of the first row
  uint32_t kv_bytes = 2;  // a value of the cache
  /// Of the node's weights count only this one, and so many rows of it. kNone: all.
  graph::WeightId weight = graph::kNone;
  uint32_t weight_rows = 0;
};

/// Activations in and out, the weights the node reads (all of them; of experts at most rows * top_k), and
/// the cache.
StepCost node_cost(const graph::Graph& graph, const graph::Node& node, const CostShape& shape);

}  // namespace doppler
