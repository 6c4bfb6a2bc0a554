#pragma once
// out = one row, the mean of all rows of in.
#include <optional>

#include "kernels/common/matrix.h"
#include "kernels/mean_rows/plan.h"

namespace doppler::kernels {

struct MeanRowsArgs {
  Matrix in;
  Matrix out;                        // [1, in.width]; another buffer
  std::optional<MeanRowsPlan> plan;  // pins the plan; nullopt: plan_mean_rows()
};

Result<void> record_mean_rows(gpu::Device& device, gpu::Commands& commands, const MeanRowsArgs& args);
Result<void> run_mean_rows(gpu::Device& device, const MeanRowsArgs& args);

}  // namespace doppler::kernels
