#include "model/binding.h"

namespace doppler::model {

Result<graph::WeightData> TensorWeights::load(const graph::Weight& weight) const {
  const TensorInfo* info = source_.find(weight.name);
  if (!info)
    return fail(ErrorCode::kNotFound, "[model] tensor {} wanted, {} has none", weight.name, source_.path());
  DOPPLER_TRY(TensorBytes bytes, source_.bytes(*info));
  graph::WeightData data;
  data.row_bytes = row_bytes(info->dtype, weight.columns);
  const uint64_t wanted = data.row_bytes * weight.rows;
  if (bytes.data.size() < wanted)
    return fail(ErrorCode::kBadFile, "[model] tensor {} of {} bytes wanted, got {}", weight.name, wanted,
                bytes.data.size());
  data.bytes = bytes.data.first(wanted);
  data.keep = std::move(bytes.owned);
  return data;
}

void TensorWeights::release(const graph::Weight& weight) const {
  if (const TensorInfo* info = source_.find(weight.name)) source_.release(*info);
}

}  // namespace doppler::model
