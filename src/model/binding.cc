#include "model/binding.h"

#include <algorithm>
#include <cstring>
#include <string>
#include <vector>

namespace doppler::model {
namespace {

using graph::Storage;
using graph::Weight;
using graph::WeightData;

constexpr size_t kMxfp4Block = 17;  // a scale byte and 32 values in 16 bytes

std::string tensor_name(const Weight& weight, uint32_t expert) {
  const size_t hole = weight.name.find("{}");
  if (hole == std::string::npos) return weight.name;
  return weight.name.substr(0, hole) + std::to_string(expert) + weight.name.substr(hole + 2);
}

// True where a stack is one tensor.
bool merged(const Weight& weight) {
  return weight.experts > 0 && weight.name.find("{}") == std::string::npos;
}

/// Bytes [size * expert, size * (expert + 1)) of a tensor that holds a stack, else its first `size` bytes.
Result<TensorBytes> part(const TensorSource& source, const std::string& name, const Weight& weight,
                         uint32_t expert, uint64_t size) {
  const TensorInfo* info = source.find(name);
  if (!info) return fail(ErrorCode::kNotFound, "[model] tensor {} wanted, {} has none", name, source.path());
  DOPPLER_TRY(TensorBytes bytes, source.bytes(*info));
  const uint64_t start = merged(weight) ? size * expert : 0;
  if (bytes.data.size() < start + size)
    return fail(ErrorCode::kBadFile, "[model] tensor {} of {} bytes wanted, got {}", name, start + size,
                bytes.data.size());
  bytes.data = bytes.data.subspan(start, size);
  return bytes;
}

WeightData owned(std::shared_ptr<std::vector<std::byte>> bytes, uint64_t row) {
  WeightData data;
  data.bytes = *bytes;
  data.row_bytes = row;
  data.keep = std::move(bytes);
  return data;
}

// [columns, rows] -> [rows, columns], in tiles that stay in the cache.
WeightData turned(std::span<const std::byte> from, const Weight& weight) {
  constexpr uint32_t kTile = 32;
  const size_t size = dtype_info(weight.dtype).block_bytes;
  const uint32_t rows = weight.rows, columns = weight.columns;
  auto to = std::make_shared<std::vector<std::byte>>(size * rows * columns);
  for (uint32_t r0 = 0; r0 < rows; r0 += kTile)
    for (uint32_t c0 = 0; c0 < columns; c0 += kTile)
      for (uint32_t r = r0; r < std::min(r0 + kTile, rows); ++r)
        for (uint32_t c = c0; c < std::min(c0 + kTile, columns); ++c)
          std::memcpy(to->data() + (static_cast<size_t>(r) * columns + c) * size,
                      from.data() + (static_cast<size_t>(c) * rows + r) * size, size);
  return owned(std::move(to), size * columns);
}

// 16 bytes of neighbouring pairs (value 2i in the low half of byte i) and a scale -> a block with values 0 …
// 15 in the low halves and 16 … 31 in the high ones.
WeightData joined_mxfp4(std::span<const std::byte> pairs, std::span<const std::byte> scales,
                        const Weight& weight) {
  const size_t count = scales.size();
  auto to = std::make_shared<std::vector<std::byte>>(count * kMxfp4Block);
  for (size_t block = 0; block < count; ++block) {
    std::byte* out = to->data() + block * kMxfp4Block;
    const std::byte* in = pairs.data() + block * 16;
    out[0] = scales[block];
    const auto value = [in](size_t i) { return (in[i / 2] >> (i % 2 == 0 ? 0 : 4)) & std::byte{15}; };
    for (size_t i = 0; i < 16; ++i) out[1 + i] = value(i) | (value(i + 16) << 4);
  }
  return owned(std::move(to), row_bytes(DType::kMXFP4, weight.columns));
}

}  // namespace

Result<WeightData> TensorWeights::load(const Weight& weight) const { return load_expert(weight, 0); }

Result<WeightData> TensorWeights::load_expert(const Weight& weight, uint32_t expert) const {
  const std::string name = tensor_name(weight, expert);
  const uint64_t row = row_bytes(weight.dtype, weight.columns);
  if (weight.storage == Storage::kSplitMxfp4) {
    const uint64_t count = static_cast<uint64_t>(weight.rows) * (weight.columns / 32);
    DOPPLER_TRY(const TensorBytes pairs, part(source_, name + "_blocks", weight, expert, count * 16));
    DOPPLER_TRY(const TensorBytes scales, part(source_, name + "_scales", weight, expert, count));
    return joined_mxfp4(pairs.data, scales.data, weight);
  }
  DOPPLER_TRY(TensorBytes bytes, part(source_, name, weight, expert, row * weight.rows));
  if (weight.storage == Storage::kTransposed) return turned(bytes.data, weight);
  WeightData data;
  data.row_bytes = row;
  data.bytes = bytes.data;
  data.keep = std::move(bytes.owned);
  return data;
}

void TensorWeights::release(const Weight& weight) const {
  const auto let_go = [this](const std::string& name) {
    if (const TensorInfo* info = source_.find(name)) source_.release(*info);
  };
  if (weight.storage == Storage::kSplitMxfp4) {
    let_go(weight.name + "_blocks");
    let_go(weight.name + "_scales");
    return;
  }
  const uint32_t tensors = weight.experts > 0 && !merged(weight) ? weight.experts : 1;
  for (uint32_t expert = 0; expert < tensors; ++expert) let_go(tensor_name(weight, expert));
}

void TensorWeights::release_expert(const Weight& weight, uint32_t expert) const {
  if (merged(weight)) return release(weight);
  if (const TensorInfo* info = source_.find(tensor_name(weight, expert))) source_.release(*info);
}

}  // namespace doppler::model
