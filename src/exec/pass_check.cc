#include "exec/pass_check.h"

#include <algorithm>

namespace doppler {
namespace {

Result<void> check_embedder(std::string_view where, const graph::Graph& graph, const KvCache& kv,
                            LogitRows rows, std::span<const float> logits) {
  if (logits.size() != graph.logits.width)
    return fail(ErrorCode::kUnsupported,
                "[{}] a model that generates text wanted, this one embeds: it gives {} numbers a text", where,
                graph.logits.width);
  if (rows != LogitRows::kLast || kv.length() != 0)
    return fail(ErrorCode::kBadInput,
                "[{}] an embedder's text in one pass into an empty cache, and one row, wanted; {} positions "
                "are used",
                where, kv.length());
  return {};
}

}  // namespace

uint32_t learned_positions(const graph::Graph& graph) {
  uint32_t positions = UINT32_MAX;
  for (const graph::Node& node : graph.nodes)
    if (node.op == graph::Op::kAddPosition)
      positions = std::min(positions, graph.weights[node.weights[0]].rows);
  return positions;
}

Result<void> check_pass(std::string_view where, const graph::Graph& graph, uint32_t max_chunk,
                        const KvCache& kv, std::span<const int32_t> ids, LogitRows rows,
                        std::span<const float> logits) {
  if (ids.empty() || ids.size() > max_chunk)
    return fail(ErrorCode::kBadInput, "[{}] 1 to {} tokens a pass wanted, got {}", where, max_chunk,
                ids.size());
  if (ids.size() > kv.capacity() - kv.length())
    return fail(ErrorCode::kBadInput,
                "[{}] room for {} tokens wanted, {} of the context's {} are used; raise --context", where,
                ids.size(), kv.length(), kv.capacity());
  const uint32_t vocab = graph.vocabulary();
  for (const int32_t id : ids)
    if (id < 0 || static_cast<uint32_t>(id) >= vocab)
      return fail(ErrorCode::kBadInput, "[{}] token ids from 0 to {} wanted, got {}", where, vocab - 1, id);
  if (graph.embedder) DOPPLER_CHECK_OK(check_embedder(where, graph, kv, rows, logits));
  const uint32_t end = kv.length() + static_cast<uint32_t>(ids.size());
  if (const uint32_t most = learned_positions(graph); end > most)
    return fail(ErrorCode::kBadInput, "[{}] at most {} positions wanted, the model has no more; got {}",
                where, most, end);
  const size_t wanted =
      rows == LogitRows::kNone ? 0 : (rows == LogitRows::kLast ? 1 : ids.size()) * graph.logits.width;
  if (logits.size() != wanted)
    return fail(ErrorCode::kBadInput, "[{}] room for {} logits wanted, got {}", where, wanted, logits.size());
  return {};
}

}  // namespace doppler
