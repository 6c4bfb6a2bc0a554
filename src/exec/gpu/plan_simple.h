#pragma once
// Ops that are one dispatch of one kernel, whatever the weights.
#include "exec/gpu/plan.h"

namespace doppler::gpu_exec {

/// True if the view's rows can be read four columns at a time.
bool is_aligned(const graph::Graph& graph, const graph::View& view);

/// True if plan_simple() knows the op.
bool is_simple(graph::Op op);

/// Kind, kernel, shape and reason of the node's dispatch over `rows` rows. Only where is_simple(node.op).
Step plan_simple(const graph::Graph& graph, const graph::Node& node, uint32_t rows, const gpu::Caps& caps);

}  // namespace doppler::gpu_exec
