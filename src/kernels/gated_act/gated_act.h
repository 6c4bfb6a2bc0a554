#pragma once
// out = act(gate) * up, with gate and up side by side in one matrix.
#include <cstdint>

#include "kernels/common/matrix.h"
#include "kernels/gated_act/plan.h"

namespace doppler::kernels {

enum class Gate : uint8_t { kSilu, kGeluTanh };

struct GatedActArgs {
  Matrix in;   // [rows, 2 * out.width]: gate, then up
  Matrix out;  // another buffer
  Gate gate = Gate::kSilu;
};

Result<void> record_gated_act(gpu::Device& device, gpu::Commands& commands, const GatedActArgs& args);
Result<void> run_gated_act(gpu::Device& device, const GatedActArgs& args);

}  // namespace doppler::kernels
