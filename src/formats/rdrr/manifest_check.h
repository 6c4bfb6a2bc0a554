#pragma once
// Parts of the manifest parser, by file: checks across entries, and the inference block.
#include <string>
#include <string_view>

#include "base/result.h"
#include "formats/rdrr/json.h"
#include "formats/rdrr/manifest.h"

namespace doppler::rdrr {

/// Spans lie in their shards and add up to the tensor's size; no byte belongs to two tensors; the size
/// follows from shape and dtype; groups name tensors that exist, each in one group only. `where` goes into
/// messages.
Result<void> check_tensors(const Manifest& manifest, std::string_view where);

/// Bytes of a tensor of this storage type and shape with rows padded to whole blocks; nullopt on overflow.
std::optional<uint64_t> stored_bytes(DType dtype, const std::vector<uint64_t>& shape);

bool is_hex_digest(std::string_view text);  // 64 lower-case hex digits

/// Fills `inference` from the manifest's block of that name; the first error goes to `status`.
void parse_inference(Json block, Inference& inference, const std::string& where, Result<void>& status);

}  // namespace doppler::rdrr
