#pragma once
// x = cap * tanh(x / cap), in place.
#include "kernels/common/matrix.h"
#include "kernels/softcap/plan.h"

namespace doppler::kernels {

struct SoftcapArgs {
  Matrix x;
  float cap = 30.0f;
};

Result<void> record_softcap(gpu::Device& device, gpu::Commands& commands, const SoftcapArgs& args);
Result<void> run_softcap(gpu::Device& device, const SoftcapArgs& args);

}  // namespace doppler::kernels
