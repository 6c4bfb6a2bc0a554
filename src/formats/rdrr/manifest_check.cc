#include "formats/rdrr/manifest_check.h"

#include <algorithm>
#include <map>
#include <set>

namespace doppler::rdrr {
namespace {

std::optional<uint64_t> multiply(uint64_t a, uint64_t b) {
  uint64_t product = 0;
  if (__builtin_mul_overflow(a, b, &product)) return std::nullopt;
  return product;
}

Result<void> check_spans(const Tensor& tensor, const Manifest& manifest, std::string_view where) {
  uint64_t covered = 0;
  for (const Span& span : tensor.spans) {
    if (span.shard >= manifest.shards.size())
      return fail(ErrorCode::kBadFile, "[{}] tensor \"{}\" lies in shard {}, there are {}", where,
                  tensor.name, span.shard, manifest.shards.size());
    const Shard& shard = manifest.shards[span.shard];
    if (span.offset > shard.size || shard.size - span.offset < span.size)
      return fail(ErrorCode::kBadFile, "[{}] tensor \"{}\" needs bytes {} to {} of {}, which has {}", where,
                  tensor.name, span.offset, span.offset + span.size, shard.filename, shard.size);
    covered += span.size;  // at most the sum of all shards each: far from overflow
    if (covered > tensor.size) break;
  }
  if (covered != tensor.size)
    return fail(ErrorCode::kBadFile, "[{}] tensor \"{}\" has {} bytes, its spans cover {}", where,
                tensor.name, tensor.size, covered);
  return {};
}

/// K-quants of tensors that are no matrices may be packed flat, without row padding.
std::optional<uint64_t> flat_bytes(DType dtype, const std::vector<uint64_t>& shape) {
  uint64_t count = 1;
  for (const uint64_t extent : shape) {
    const std::optional<uint64_t> next = multiply(count, extent);
    if (!next) return std::nullopt;
    count = *next;
  }
  return count > UINT64_MAX / 1024 ? std::nullopt : std::optional<uint64_t>(row_bytes(dtype, count));
}

Result<void> check_size(const Tensor& tensor, std::string_view where) {
  const std::optional<DType> dtype = tensor_dtype(tensor);
  for (const uint64_t extent : tensor.shape)
    if (extent == 0)
      return fail(ErrorCode::kBadFile, "[{}] tensor \"{}\" has an extent of zero", where, tensor.name);
  if (!dtype) return {};  // unknown to this build: only whoever opens the tensor needs to refuse it
  const std::optional<uint64_t> wanted = stored_bytes(*dtype, tensor.shape);
  if (wanted && *wanted == tensor.size) return {};
  if (tensor.shape.size() != 2 && flat_bytes(*dtype, tensor.shape) == tensor.size) return {};
  if (tensor.layout == "column" && tensor.shape.size() == 2 &&
      stored_bytes(*dtype, {tensor.shape[1], tensor.shape[0]}) == tensor.size)
    return {};
  return fail(ErrorCode::kBadFile,
              "[{}] tensor \"{}\": {} bytes follow from its shape and {}, its size says {}", where,
              tensor.name, wanted.value_or(UINT64_MAX), tensor.dtype, tensor.size);
}

Result<void> check_overlaps(const Manifest& manifest, std::string_view where) {
  struct Piece {
    uint64_t begin, end;
    const Tensor* tensor;
  };
  std::vector<Piece> pieces;
  for (const Tensor& tensor : manifest.tensors)
    for (const Span& span : tensor.spans) {
      const uint64_t begin = manifest.shards[span.shard].offset + span.offset;
      pieces.push_back({begin, begin + span.size, &tensor});
    }
  std::sort(pieces.begin(), pieces.end(), [](const Piece& a, const Piece& b) { return a.begin < b.begin; });
  for (size_t i = 1; i < pieces.size(); ++i)
    if (pieces[i].begin < pieces[i - 1].end)
      return fail(ErrorCode::kBadFile, "[{}] tensors \"{}\" and \"{}\" overlap at byte {}", where,
                  pieces[i - 1].tensor->name, pieces[i].tensor->name, pieces[i].begin);
  return {};
}

Result<void> check_groups(const Manifest& manifest, std::string_view where) {
  std::map<std::string_view, std::string_view> owner;
  for (const Group& group : manifest.groups) {
    for (size_t i = 0; i < group.shards.size(); ++i) {
      if (group.shards[i] >= manifest.shards.size())
        return fail(ErrorCode::kBadFile, "[{}] group \"{}\" names shard {}, there are {}", where, group.id,
                    group.shards[i], manifest.shards.size());
      if (i > 0 && group.shards[i] <= group.shards[i - 1])
        return fail(ErrorCode::kBadFile, "[{}] group \"{}\": its shards are not in ascending order", where,
                    group.id);
    }
    for (const std::string& name : group.tensors) {
      if (!manifest.find(name))
        return fail(ErrorCode::kBadFile, "[{}] group \"{}\" names tensor \"{}\", which is not there", where,
                    group.id, name);
      const auto [at, fresh] = owner.emplace(name, group.id);
      if (!fresh)
        return fail(ErrorCode::kBadFile, "[{}] tensor \"{}\" is in the groups \"{}\" and \"{}\"", where, name,
                    at->second, group.id);
    }
    if (!is_hex_digest(group.hash))
      return fail(ErrorCode::kBadFile, "[{}] group \"{}\": 64 lower-case hex digits wanted as hash", where,
                  group.id);
  }
  return {};
}

}  // namespace

std::optional<DType> tensor_dtype(const Tensor& tensor) { return dtype_from_name(tensor.dtype); }

std::optional<uint64_t> stored_bytes(DType dtype, const std::vector<uint64_t>& shape) {
  if (shape.empty()) return row_bytes(dtype, 1);
  if (shape.back() > UINT64_MAX / 1024) return std::nullopt;
  uint64_t bytes = row_bytes(dtype, shape.back());
  for (size_t i = 0; i + 1 < shape.size(); ++i) {
    const std::optional<uint64_t> next = multiply(bytes, shape[i]);
    if (!next) return std::nullopt;
    bytes = *next;
  }
  return bytes;
}

bool is_hex_digest(std::string_view text) {
  return text.size() == 64 && std::all_of(text.begin(), text.end(), [](char c) {
           return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f');
         });
}

bool is_safe_filename(std::string_view name) {
  if (name.empty() || name.size() > 255 || name == "." || name == "..") return false;
  return std::all_of(name.begin(), name.end(), [](char c) {
    return static_cast<unsigned char>(c) >= 0x20 && c != 0x7f && c != '/' && c != '\\' && c != ':';
  });
}

Result<void> check_tensors(const Manifest& manifest, std::string_view where) {
  for (const Tensor& tensor : manifest.tensors) {
    DOPPLER_CHECK_OK(check_spans(tensor, manifest, where));
    DOPPLER_CHECK_OK(check_size(tensor, where));
  }
  DOPPLER_CHECK_OK(check_overlaps(manifest, where));
  DOPPLER_CHECK_OK(check_groups(manifest, where));
  if (manifest.merkle)
    for (const auto& [name, root] : manifest.merkle->roots)
      if (!manifest.find(name))
        return fail(ErrorCode::kBadFile, "[{}] blockMerkle names tensor \"{}\", which is not there", where,
                    name);
  return {};
}

}  // namespace doppler::rdrr
