#pragma once
// What a shader that reads packed weights needs: defines, bindings and the plane numbers of its params.
#include <vector>

#include "kernels/common/record.h"
#include "kernels/weights/packed.h"

namespace doppler::kernels {

/// The defines WEIGHT_FILE, AUX (planes behind lo), MIN (m is not always 0 and m.x = m.y), HALVES (s.x and
/// s.y differ) and HALF_MINS (so do m.x and m.y).
void set_weight_defines(Defines& defines, DType dtype);

/// Lower-case name for labels and files: "q4_k".
std::string weight_label(DType dtype);

/// Appends the bindings `lo` and, if the type has one, `aux`.
void bind_weight(const PackedWeight& weight, std::vector<gpu::Binding>& bindings);

/// kBadInput unless the weight has a buffer that holds its layout within the binding limit.
Result<void> check_weight(std::string_view op, const PackedWeight& weight, const gpu::Caps& caps);

/// Fills lo_words … super_start of a params struct.
template <class Params>
void set_weight_params(Params& params, const PackedLayout& layout) {
  params.groups = layout.groups;
  params.lo_words = layout.lo.words;
  params.hi_words = layout.hi.words;
  params.scale_words = layout.scale.words;
  params.super_words = layout.super.words;
  params.scale_start = static_cast<uint32_t>((layout.scale.offset - layout.aux_offset) / 4);
  params.super_start = static_cast<uint32_t>((layout.super.offset - layout.aux_offset) / 4);
}

}  // namespace doppler::kernels
