#pragma once
// out = act(gate) * up, with gate and up in one matrix; or the clamped form of gpt-oss.
#include <cstdint>

#include "graph/graph.h"
#include "kernels/common/matrix.h"
#include "kernels/gated_act/plan.h"

namespace doppler::kernels {

struct GatedActArgs {
  Matrix in;   // [rows, 2 * out.width]
  Matrix out;  // another buffer
  graph::Activation activation = graph::Activation::kSilu;
  uint32_t group = 0;             // columns of `in` that are one [gate | up]; 0: the whole row
  bool interleaved = false;       // gate in even columns, up in odd ones
  float limit = 0, alpha = 1.0f;  // kSwigluClamped: g = min(gate, limit), u = clamp(up, -limit, limit),
                                  // g sigmoid(alpha g) (u + 1)
};

/// kBadInput for groups that do not divide the row, and for a kSwigluClamped without a limit above 0.
Result<void> record_gated_act(gpu::Device& device, gpu::Commands& commands, const GatedActArgs& args);
Result<void> run_gated_act(gpu::Device& device, const GatedActArgs& args);

}  // namespace doppler::kernels
