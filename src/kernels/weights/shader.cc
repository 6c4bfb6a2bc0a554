#include "kernels/weights/shader.h"

namespace doppler::kernels {

std::string weight_label(DType dtype) {
  std::string name(dtype_name(dtype));
  for (char& c : name)
    if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
  return name;
}

void set_weight_defines(Defines& defines, DType dtype) {
  const bool min =
      dtype == DType::kQ4_1 || dtype == DType::kQ5_1 || dtype == DType::kQ4_K || dtype == DType::kQ5_K;
  const bool floats = dtype == DType::kF32 || dtype == DType::kF16 || dtype == DType::kBF16;
  defines.set("WEIGHT_FILE", "\"weights/" + weight_label(dtype) + ".wgsl\"")
      .flag("AUX", !floats)
      .flag("MIN", min)
      .flag("HALVES", dtype == DType::kQ2_K || dtype == DType::kQ3_K || dtype == DType::kQ6_K)
      .flag("HALF_MINS", dtype == DType::kQ2_K);
}

void bind_weight(const PackedWeight& weight, std::vector<gpu::Binding>& bindings) {
  const PackedLayout& layout = weight.layout;
  bindings.push_back({weight.buffer, 0, layout.aux_offset});
  if (layout.aux_offset != layout.bytes)
    bindings.push_back({weight.buffer, layout.aux_offset, layout.bytes - layout.aux_offset});
}

Result<void> check_weight(std::string_view op, const PackedWeight& weight, const gpu::Caps& caps) {
  const PackedLayout& layout = weight.layout;
  if (layout.rows == 0 || layout.columns == 0 || layout.bytes == 0)
    return fail(ErrorCode::kBadInput,
                "[{}] weight: rows and columns of a runnable type wanted, got {} x {} {}", op, layout.rows,
                layout.columns, dtype_name(layout.dtype));
  if (weight.buffer == nullptr || weight.buffer->bytes() < layout.bytes)
    return fail(ErrorCode::kBadInput, "[{}] weight: a buffer of {} bytes wanted, got {}", op, layout.bytes,
                weight.buffer == nullptr ? 0 : weight.buffer->bytes());
  if (layout.bytes > caps.max_binding_bytes)
    return fail(ErrorCode::kBadInput,
                "[{}] weight: {} bytes exceed the binding limit of {}; split it by rows", op, layout.bytes,
                caps.max_binding_bytes);
  return {};
}

}  // namespace doppler::kernels
