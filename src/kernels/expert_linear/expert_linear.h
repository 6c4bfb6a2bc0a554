#pragma once
// out[use] = x of the use * W of its expert^T (+ bias), W packed (Op::kExpertLinear). A use is (row, slot).
// Accumulates in f32 always; a use's result depends neither on other uses nor on which experts are there.
#include <cstdint>
#include <optional>

#include "kernels/common/matrix.h"
#include "kernels/expert_group/expert_group.h"
#include "kernels/expert_linear/plan.h"
#include "kernels/quantize_act/quantize_act.h"
#include "kernels/weights/packed.h"

namespace doppler::kernels {

/// Some experts' matrices of one weight, one below the other in one packed layout.
struct ExpertStack {
  const gpu::Buffer* buffer = nullptr;
  PackedLayout layout;                // rows: held * w_rows
  const gpu::Buffer* bias = nullptr;  // f32 [held, w_rows]; null: none
  uint32_t first = 0, held = 0;       // places [first, first + held)
};

struct ExpertLinearArgs {
  /// [rows, columns], shared by a row's uses, or [rows, top_k * columns], a part a use. Not read (may be
  /// empty) if `quantized` is set.
  Matrix x;
  /// int8 activations: [rows, columns] or [rows * top_k, columns].
  std::optional<QuantizedAct> quantized;
  Matrix routes;         // [rows, 2 * top_k], as record_route writes them
  uint32_t experts = 0;  // of the model
  ExpertStack w;
  /// Columns of the first slot; those of slot s are `slot_width` floats further each. Only columns of uses
  /// whose expert is in `w` are written.
  Matrix out;
  uint32_t slot_width = 0;
  /// u32 [experts], the place of each; null: expert e has place e.
  const gpu::Buffer* places = nullptr;
  std::optional<ExpertGroups> groups;  // wanted where expert_linear_groups() says so
};

/// kBadInput for shapes that do not fit, kUnsupported for int8 with float weights and for more rows than a
/// grid has tiles.
Result<void> record_expert_linear(gpu::Device& device, gpu::Commands& commands, const ExpertLinearArgs& args);
Result<void> run_expert_linear(gpu::Device& device, const ExpertLinearArgs& args);

}  // namespace doppler::kernels
