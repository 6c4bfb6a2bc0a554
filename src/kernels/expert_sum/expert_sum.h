#pragma once
// The weighted sum of a row's experts (Op::kExpertSum).
#include <cstdint>

#include "kernels/common/matrix.h"
#include "kernels/expert_sum/plan.h"

namespace doppler::kernels {

struct ExpertSumArgs {
  Matrix in;      // [rows, top_k * out.width]: one part an expert of the row
  Matrix routes;  // [rows, 2 * top_k], as record_route writes them
  Matrix out;     // another buffer
};

Result<void> record_expert_sum(gpu::Device& device, gpu::Commands& commands, const ExpertSumArgs& args);
Result<void> run_expert_sum(gpu::Device& device, const ExpertSumArgs& args);

}  // namespace doppler::kernels
