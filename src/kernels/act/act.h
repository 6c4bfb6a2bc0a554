#pragma once
// out = act(in).
#include "graph/graph.h"
#include "kernels/act/plan.h"
#include "kernels/common/matrix.h"

namespace doppler::kernels {

struct ActArgs {
  Matrix in;
  Matrix out;                                               // same shape; another buffer
  graph::Activation activation = graph::Activation::kSilu;  // any but kSwigluClamped
};

Result<void> record_act(gpu::Device& device, gpu::Commands& commands, const ActArgs& args);
Result<void> run_act(gpu::Device& device, const ActArgs& args);

}  // namespace doppler::kernels
