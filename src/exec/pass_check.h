#pragma once
// What both executors ask of a forward pass before they run it.
#include "exec/executor.h"

namespace doppler {

/// Positions that the graph's tables of learned positions have; UINT32_MAX where it has none.
uint32_t learned_positions(const graph::Graph& graph);

/// kBadInput unless 1 to `max_chunk` ids below the vocabulary fit behind kv.length(), `logits` has room for
/// the asked rows, and an embedder's text comes whole. kUnsupported for logits of an embedder. `where`:
/// "cpu", "gpu".
Result<void> check_pass(std::string_view where, const graph::Graph& graph, uint32_t max_chunk,
                        const KvCache& kv, std::span<const int32_t> ids, LogitRows rows,
                        std::span<const float> logits);

}  // namespace doppler
