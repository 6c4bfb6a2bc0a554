#pragma once
// out = x * W^T (+ bias), W packed. Accumulates in f32 always; a row's result does not depend on the other
// rows.
#include <cstdint>
#include <optional>

#include "kernels/common/matrix.h"
#include "kernels/linear/plan.h"
#include "kernels/quantize_act/quantize_act.h"
#include "kernels/weights/packed.h"

namespace doppler::kernels {

struct LinearArgs {
  /// [rows, columns]: columns must equal w.layout.columns. Not read (may be empty) if `quantized` is set.
  Matrix x;
  /// Set: int8 activations (record_quantize_act made them); only where linear_takes_int8(dtype). nullopt:
  /// exact.
  std::optional<QuantizedAct> quantized;
  /// A part of a tensor. Its result goes to columns [0, layout.rows) of `out`: the caller puts first_row into
  /// out.offset.
  PackedWeight w;
  Matrix out;                          // [rows, layout.rows]; its buffer must not be x's
  const gpu::Buffer* bias = nullptr;   // f32, one per output column of `out`
  uint32_t bias_offset = 0;            // in floats
  std::optional<LinearKernel> kernel;  // pins the kernel; nullopt: plan_linear()
  std::optional<LinearPlan> plan;      // pins the whole plan
};

/// kBadInput for shapes that do not fit, kUnsupported for int8 with float weights.
Result<void> record_linear(gpu::Device& device, gpu::Commands& commands, const LinearArgs& args);
Result<void> run_linear(gpu::Device& device, const LinearArgs& args);

}  // namespace doppler::kernels
