#pragma once
// out = a * b; a b of one column multiplies the whole row.
#include "kernels/common/matrix.h"
#include "kernels/mul/plan.h"

namespace doppler::kernels {

struct MulArgs {
  Matrix a;
  Matrix b;    // as a, or [rows, 1]
  Matrix out;  // as a; may be a, or a b of a's shape (in place: same buffer, offset and stride)
};

Result<void> record_mul(gpu::Device& device, gpu::Commands& commands, const MulArgs& args);
Result<void> run_mul(gpu::Device& device, const MulArgs& args);

}  // namespace doppler::kernels
