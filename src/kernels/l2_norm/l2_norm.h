#pragma once
// out = x / max(|x|, eps) over each row: to length 1.
#include "kernels/common/matrix.h"
#include "kernels/l2_norm/plan.h"

namespace doppler::kernels {

struct L2NormArgs {
  Matrix x;
  Matrix out;  // same shape; another buffer
  float eps = 1e-12f;
};

Result<void> record_l2_norm(gpu::Device& device, gpu::Commands& commands, const L2NormArgs& args);
Result<void> run_l2_norm(gpu::Device& device, const L2NormArgs& args);

}  // namespace doppler::kernels
