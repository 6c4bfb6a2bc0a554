#pragma once
// Where the nodes between a layer's q, k, v and its attention run as one dispatch.
#include <cstdint>
#include <optional>

#include "graph/graph.h"

namespace doppler::gpu_exec {

/// Numbers of the nodes, from the first to the kKvWrite that ends them.
struct HeadsRun {
  uint32_t q_norm = graph::kNone, k_norm = graph::kNone;  // kNone: none
  uint32_t q_rope = 0, k_rope = 0, write = 0;
};

/// The run that begins at node `first`: norms of q and k heads (both or none), RoPE of q and k from one
/// table, k and v to the cache, where q, k and v lie side by side in one value. nullopt: there is none.
std::optional<HeadsRun> heads_run(const graph::Graph& graph, uint32_t first);

}  // namespace doppler::gpu_exec
