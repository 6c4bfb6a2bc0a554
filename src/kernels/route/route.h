#pragma once
// The experts of each row: the top_k largest router logits and their weights (Op::kRoute).
#include <cstdint>

#include "graph/graph.h"
#include "kernels/common/matrix.h"
#include "kernels/route/plan.h"

namespace doppler::kernels {

struct RouteArgs {
  Matrix logits;  // [rows, experts]
  Matrix out;     // [rows, 2 * top_k]: numbers of the experts as whole floats, then their weights
  graph::Routing routing = graph::Routing::kSoftmaxOfChosen;
};

/// kUnsupported for more than kMaxExperts or a top_k above kMaxTopK.
Result<void> record_route(gpu::Device& device, gpu::Commands& commands, const RouteArgs& args);
Result<void> run_route(gpu::Device& device, const RouteArgs& args);

}  // namespace doppler::kernels
