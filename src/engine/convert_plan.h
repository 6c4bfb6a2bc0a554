#pragma once
// What a conversion writes: every tensor's new name, role, group, storage type and place.
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/dtype.h"
#include "base/result.h"
#include "engine/convert.h"
#include "formats/rdrr/manifest.h"
#include "formats/tensor_source.h"
#include "model/config.h"

namespace doppler::convert_detail {

struct PlannedTensor {
  const TensorInfo* source = nullptr;
  std::string name;         // as Hugging Face names it
  std::string role, group;  // as RDRR manifests name them
  DType dtype = DType::kF32;
  // Rows of a q or k projection that GGUF keeps with rotary pairs next to each other: the rotated dimensions
  // of each head; 0: rows stay in order.
  uint32_t paired_rows = 0;
  uint32_t head_rows = 0;  // rows of one head
};

/// All tensors in the order they are written: embedding, layers, head, the rest. `manifest` is the source's
/// own, or null for a GGUF file.
Result<std::vector<PlannedTensor>> plan_tensors(const TensorSource& source, const model::ModelConfig& config,
                                                const rdrr::Manifest* manifest,
                                                const ConvertOptions& options);

/// The row of the source that becomes row `row`. GGUF's LLaMA files hold, for each head, rotary pair i in
/// rows 2i and 2i + 1; Hugging Face in rows i and i + paired/2.
inline uint64_t source_row(const PlannedTensor& tensor, uint64_t row) {
  if (tensor.paired_rows == 0) return row;
  const uint64_t head = row / tensor.head_rows, r = row % tensor.head_rows, half = tensor.paired_rows / 2;
  if (r >= tensor.paired_rows) return row;
  return head * tensor.head_rows + (r < half ? 2 * r : 2 * (r - half) + 1);
}

/// True for what the original engine's readers can use a weight of this role and width as.
bool original_reads(DType dtype, std::string_view role, uint64_t columns);

}  // namespace doppler::convert_detail
