#pragma once
// out = a + b.
#include "kernels/add/plan.h"
#include "kernels/common/matrix.h"

namespace doppler::kernels {

struct AddArgs {
  Matrix a, b;
  Matrix out;  // a or b itself (in place: same buffer, offset and stride), or another buffer
};

Result<void> record_add(gpu::Device& device, gpu::Commands& commands, const AddArgs& args);
Result<void> run_add(gpu::Device& device, const AddArgs& args);

}  // namespace doppler::kernels
