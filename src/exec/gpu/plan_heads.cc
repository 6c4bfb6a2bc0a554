#include "exec/gpu/plan_heads.h"

namespace doppler::gpu_exec {
namespace {

using graph::Graph;
using graph::Node;
using graph::Op;
using graph::View;

bool same(const View& a, const View& b) {
  return a.value == b.value && a.offset == b.offset && a.width == b.width;
}

bool follows(const View& a, const View& b) { return a.value == b.value && a.offset + a.width == b.offset; }

// In place, on heads of head_dim columns.
bool is_head_op(const Node& node, Op op, uint32_t head_dim) {
  return node.op == op && same(node.in, node.out) && node.group == head_dim;
}

bool norms_alike(const Node& a, const Node& b) {
  return a.eps == b.eps && a.weight_offset == b.weight_offset;
}

}  // namespace

std::optional<HeadsRun> heads_run(const Graph& graph, uint32_t first) {
  HeadsRun run;
  uint32_t next = first;
  if (graph.nodes[first].op == Op::kRmsNorm) {
    run.q_norm = next++;
    run.k_norm = next++;
  }
  if (next + 2 >= graph.nodes.size()) return std::nullopt;
  run.q_rope = next;
  run.k_rope = next + 1;
  run.write = next + 2;
  const Node &q = graph.nodes[run.q_rope], &k = graph.nodes[run.k_rope], &write = graph.nodes[run.write];
  if (write.op != Op::kKvWrite) return std::nullopt;
  const uint32_t head_dim = graph.kv_layers[write.kv_layer].head_dim;
  if (head_dim % 8 != 0 || !is_head_op(q, Op::kRope, head_dim) || !is_head_op(k, Op::kRope, head_dim) ||
      q.rope_table != k.rope_table || q.rope_interleaved != k.rope_interleaved || !same(k.in, write.in) ||
      !follows(q.in, k.in) || !follows(k.in, write.in2) || write.in.width != write.in2.width)
    return std::nullopt;
  if (run.q_norm != graph::kNone) {
    const Node &q_norm = graph.nodes[run.q_norm], &k_norm = graph.nodes[run.k_norm];
    if (!is_head_op(q_norm, Op::kRmsNorm, head_dim) || !is_head_op(k_norm, Op::kRmsNorm, head_dim) ||
        !same(q_norm.in, q.in) || !same(k_norm.in, k.in) || !norms_alike(q_norm, k_norm))
      return std::nullopt;
  }
  return run;
}

}  // namespace doppler::gpu_exec
