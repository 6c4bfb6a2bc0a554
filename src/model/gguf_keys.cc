#include "model/gguf_keys.h"

namespace doppler::model {

Result<std::optional<uint32_t>> GgufKeys::find_count(std::string_view name, uint64_t least,
                                                     uint64_t most) const {
  const std::string full = key(name);
  DOPPLER_TRY(const std::optional<uint64_t> value, file_.get_uint(full));
  if (!value) return std::optional<uint32_t>();
  if (*value < least || *value > most)
    return fail(ErrorCode::kBadFile, "[model] {} from {} to {} wanted, got {}", full, least, most, *value);
  return std::optional<uint32_t>(static_cast<uint32_t>(*value));
}

Result<uint32_t> GgufKeys::count(std::string_view name, uint64_t least, uint64_t most) const {
  DOPPLER_TRY(const std::optional<uint32_t> value, find_count(name, least, most));
  if (!value)
    return fail(ErrorCode::kBadFile, "[model] metadata key {} wanted, {} has none", key(name), file_.path());
  return *value;
}

Result<std::optional<float>> GgufKeys::find_number(std::string_view name, double least, double most) const {
  const std::string full = key(name);
  DOPPLER_TRY(const std::optional<double> value, file_.get_float(full));
  if (!value) return std::optional<float>();
  if (!(*value >= least && *value <= most))  // NaN fails too
    return fail(ErrorCode::kBadFile, "[model] {} from {} to {} wanted, got {}", full, least, most, *value);
  return std::optional<float>(static_cast<float>(*value));
}

Result<float> GgufKeys::number(std::string_view name, double least, double most) const {
  DOPPLER_TRY(const std::optional<float> value, find_number(name, least, most));
  if (!value)
    return fail(ErrorCode::kBadFile, "[model] metadata key {} wanted, {} has none", key(name), file_.path());
  return *value;
}

Result<std::string> GgufKeys::text(std::string_view name) const {
  DOPPLER_TRY(const std::optional<std::string_view> value, file_.get_string(key(name)));
  return std::string(value.value_or(""));
}

}  // namespace doppler::model
