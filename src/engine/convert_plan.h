#pragma once
// What a conversion writes: every tensor's new name, role, group, storage type and place, and which rows of
// the source it is made of.
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/dtype.h"
#include "base/result.h"
#include "engine/convert.h"
#include "engine/convert_source.h"
#include "formats/tensor_source.h"
#include "graph/graph.h"
#include "model/config.h"

namespace doppler::convert_detail {

/// Every `step`th row of a matrix, or of one expert of a stack, from `first` on.
struct RowRange {
  graph::Weight weight;
  uint32_t expert = 0;
  uint32_t first = 0, step = 1;
};

/// `rows` rows of a new tensor. With `odd` the rows alternate: even ones from `even`, odd ones from `odd`
/// (gpt-oss's gates and ups).
struct Part {
  uint32_t rows = 0;
  RowRange even;
  std::optional<RowRange> odd;
  // Rows of a q or k projection that GGUF keeps with rotary pairs next to each other: the rotated dimensions
  // of each head; 0: rows stay in order.
  uint32_t paired_rows = 0;
  uint32_t head_rows = 0;  // rows of one head
};

enum class Form {
  kBytes,        // `source`, byte for byte
  kRows,         // `parts`, one after the other
  kMxfp4Pairs,   // of `parts` in MXFP4: 16 bytes a block, neighbouring values in one; a U8 tensor, "_blocks"
  kMxfp4Scales,  // and the scale byte of each block; a U8 tensor, "_scales"
};

struct PlannedTensor {
  std::string name;         // as Hugging Face names it
  std::string role, group;  // as RDRR manifests name them
  Form form = Form::kBytes;
  DType from = DType::kF32, dtype = DType::kF32;
  DType asked = DType::kF32;  // what --quant asks for; `dtype` differs where the rows do not fill its blocks
  std::vector<uint64_t> shape;
  const TensorInfo* source = nullptr;
  std::vector<Part> parts;

  uint64_t columns() const { return shape.empty() ? 1 : shape.back(); }
  uint64_t rows() const;
  uint64_t source_bytes() const;
  uint64_t bytes() const { return rows() * row_bytes(dtype, columns()); }
};

struct Plan {
  std::vector<PlannedTensor> tensors;  // in the order they are written: embedding, layers, head, the rest
  model::ModelConfig config;           // of what is written
  std::vector<std::string> left_out;   // tensors of a Hugging Face folder that its graph does not use
  uint32_t packed_layers = 0;          // layers whose experts are one tensor (gpt-oss)
};

/// Errors: an unknown --quant, packed weights that would be packed anew, experts in a form that has no place.
Result<Plan> plan_conversion(const Source& source, const ConvertOptions& options);

/// The row of the source that becomes row `row`. GGUF's LLaMA files hold, for each head, rotary pair i in
/// rows 2i and 2i + 1; Hugging Face in rows i and i + paired/2.
inline uint64_t unpaired_row(const Part& part, uint64_t row) {
  if (part.paired_rows == 0) return row;
  const uint64_t head = row / part.head_rows, r = row % part.head_rows, half = part.paired_rows / 2;
  if (r >= part.paired_rows) return row;
  return head * part.head_rows + (r < half ? 2 * r : 2 * (r - half) + 1);
}

/// True for what the original engine's readers can use a weight of this role and width as.
bool original_reads(DType dtype, std::string_view role, uint64_t columns);

}  // namespace doppler::convert_detail
