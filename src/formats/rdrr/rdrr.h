#pragma once
// An RDRR directory (manifest.json and raw shards) as a source of tensors. docs/rdrr.md describes the format.
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/byte_source.h"
#include "base/result.h"
#include "formats/rdrr/manifest.h"
#include "formats/tensor_source.h"

namespace doppler::rdrr {

/// True if `path` is a directory that holds a manifest.json.
bool is_rdrr_directory(const std::string& path);

/// Compares the shard files of a directory with its manifest: missing, shorter, longer. The first fault is
/// the error (kNotFound or kBadFile) and names the file.
Result<void> check_shard_files(const std::string& directory, const Manifest& manifest);

class RdrrModel final : public TensorSource {
 public:
  /// Reads and checks the manifest, compares the shard files' sizes with it and maps them. Digests are not
  /// computed here (verify.h). Errors: what parse_manifest() and check_shard_files() report, a storage type
  /// or layout this build cannot read (kUnsupported).
  static Result<std::unique_ptr<RdrrModel>> open(const std::string& directory);

  const Manifest& manifest() const { return manifest_; }

  /// Text of tokenizer.json, or the bytes of tokenizer.model, as manifest().tokenizer names it.
  Result<std::string> tokenizer_text() const;

  /// Text of chat_template.jinja, which this project's writer keeps where the source had one; "" if there is
  /// none.
  Result<std::string> chat_template() const;

  const std::string& path() const override { return directory_; }
  const std::vector<TensorInfo>& tensors() const override { return tensors_; }
  const TensorInfo* find(std::string_view name) const override;

  /// A view of the mapping, or a copy where a tensor crosses shards that could not be mapped one after the
  /// other, or where the file stores floats at an address their type cannot be read from.
  Result<TensorBytes> bytes(const TensorInfo& tensor) const override;
  void release(const TensorInfo& tensor) const override;

 private:
  Result<void> map_shards();
  Result<void> list_tensors();
  /// Bytes [offset, offset + length) of the concatenation, which must not cross separately mapped shards.
  Result<std::span<const std::byte>> view(const Span& span) const;

  std::string directory_;
  Manifest manifest_;
  std::unique_ptr<ByteSource> whole_;                // all shards in one mapping, or
  std::vector<std::unique_ptr<ByteSource>> shards_;  // each on its own
  std::vector<TensorInfo> tensors_;
  std::map<std::string, size_t, std::less<>> index_;
};

}  // namespace doppler::rdrr
