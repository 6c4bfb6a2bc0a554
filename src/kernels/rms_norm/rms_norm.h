#pragma once
// out = x * rsqrt(mean(x^2) + eps) * (weight + weight_offset), per row or per head; and the form that adds
// first.
#include <cstdint>
#include <optional>

#include "kernels/common/matrix.h"
#include "kernels/quantize_act/quantize_act.h"
#include "kernels/rms_norm/plan.h"

namespace doppler::kernels {

struct RmsNormArgs {
  Matrix x;
  uint32_t group = 0;                   // columns with a norm of their own (a head); 0: the whole row
  const gpu::Buffer* weight = nullptr;  // f32 [group]
  uint32_t weight_base = 0;             // in floats, where the weight begins in its buffer
  float weight_offset = 0;
  float eps = 1e-6f;
  std::optional<RmsNormPlan> plan;        // pins the plan; nullopt: plan_rms_norm()
  std::optional<QuantizedAct> quantized;  // out as int8 too: whole rows of whole groups, all aligned
  Matrix out;  // same shape; may be x itself (in place: same buffer, offset and stride)
};

Result<void> record_rms_norm(gpu::Device& device, gpu::Commands& commands, const RmsNormArgs& args);
Result<void> run_rms_norm(gpu::Device& device, const RmsNormArgs& args);

/// sum = a + b, or a + rms_norm(b); out = rms_norm(sum), rows only: one dispatch for a residual add and the
/// norms around it.
struct AddRmsNormArgs {
  Matrix a, b;
  Matrix sum;  // a or b itself (in place: same buffer, offset and stride), or a buffer of its own
  const gpu::Buffer* weight = nullptr;
  uint32_t weight_base = 0;
  /// Set: b is normalised before it is added, by the weight that begins here in the same buffer.
  std::optional<uint32_t> b_weight_base;
  float weight_offset = 0;                // of both norms
  float eps = 1e-6f;                      // of both
  std::optional<QuantizedAct> quantized;  // out as int8 too: whole groups, all aligned
  Matrix out;                             // a buffer that is none of the others
};

Result<void> record_add_rms_norm(gpu::Device& device, gpu::Commands& commands, const AddRmsNormArgs& args);
Result<void> run_add_rms_norm(gpu::Device& device, const AddRmsNormArgs& args);

}  // namespace doppler::kernels
