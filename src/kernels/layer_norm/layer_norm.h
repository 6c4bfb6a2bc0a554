#pragma once
// out = (x - mean) * rsqrt(variance + eps) * weight + bias over each row.
#include <cstdint>
#include <optional>

#include "kernels/common/matrix.h"
#include "kernels/layer_norm/plan.h"

namespace doppler::kernels {

struct LayerNormArgs {
  Matrix x;
  const gpu::Buffer* weight = nullptr;  // f32 [width]
  uint32_t weight_base = 0;             // in floats, where the weight begins in its buffer
  const gpu::Buffer* bias = nullptr;    // f32 [width]; may lie in the weight's buffer
  uint32_t bias_base = 0;
  float eps = 1e-5f;
  Matrix out;                         // same shape; another buffer
  std::optional<LayerNormPlan> plan;  // pins the plan; nullopt: plan_layer_norm()
};

Result<void> record_layer_norm(gpu::Device& device, gpu::Commands& commands, const LayerNormArgs& args);
Result<void> run_layer_norm(gpu::Device& device, const LayerNormArgs& args);

}  // namespace doppler::kernels
