#pragma once
// Writes an RDRR directory tensor by tensor, in constant memory. Everything goes into a temporary directory
// beside the wanted one, which takes its name only when the last byte is on disk.
#include <cstdint>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/hash.h"
#include "base/result.h"
#include "formats/rdrr/manifest.h"
#include "formats/rdrr/merkle.h"

namespace doppler::rdrr {

struct WriterOptions {
  uint64_t shard_size_bytes = 64u << 20;
  HashKind hash = HashKind::kSha256;
};

/// What begin_tensor() needs to know.
struct NewTensor {
  std::string name;
  DType dtype = DType::kF32;
  std::vector<uint64_t> shape;
  std::string role;
  std::string group;  // its digest is computed over its tensors in the order they are written
};

/// The dtype as manifests spell it: as dtype_name(), but "Q4_K_M" for Q4_K, which is what both generations of
/// the original write.
std::string manifest_dtype(DType dtype);

class Writer {
 public:
  /// `directory` must not exist or be empty; its parent must exist. Shards hold 4 KiB at least.
  static Result<std::unique_ptr<Writer>> create(const std::string& directory, const WriterOptions& options);

  /// Removes what was written, unless finish() succeeded.
  ~Writer();
  Writer(const Writer&) = delete;
  Writer& operator=(const Writer&) = delete;

  Result<void> begin_tensor(NewTensor tensor);
  Result<void> append(std::span<const std::byte> bytes);  // any number of times
  Result<void> end_tensor();                              // checks that dtype and shape got all their bytes

  /// A group without bytes of its own: it names the shards in which written tensors of other groups lie.
  /// Readers of the original look for one an expert, also where a layer's experts are packed into one tensor.
  void add_shard_group(const std::string& id, std::span<const std::string> tensors);

  /// A small file beside the shards (tokenizer.json), with its digest in the manifest.
  Result<void> add_file(const std::string& filename, std::string_view bytes);

  /// Fills the manifest's shards, tensors, groups, digests and totals from what was written, writes it, and
  /// gives the directory its name.
  Result<void> finish(Manifest manifest);

  uint64_t bytes_written() const { return total_; }
  size_t shard_count() const { return shards_.size(); }

 private:
  struct OpenGroup {
    Group group;
    std::unique_ptr<Hasher> hasher;
  };

  Writer(std::string directory, std::string temporary, const WriterOptions& options)
      : directory_(std::move(directory)), temporary_(std::move(temporary)), options_(options) {}
  Result<void> write(std::span<const std::byte> bytes, std::vector<Span>* spans);
  Result<void> open_shard();
  Result<void> close_shard();
  Result<void> pad(uint64_t alignment);
  Group& open_group(const std::string& id);
  void fill_groups(Manifest& manifest);

  std::string directory_, temporary_;
  WriterOptions options_;
  bool finished_ = false;
  int fd_ = -1;
  std::unique_ptr<Hasher> shard_hasher_;
  uint64_t total_ = 0;
  std::vector<Shard> shards_;
  std::vector<Tensor> tensors_;
  std::vector<OpenGroup> groups_;
  std::map<std::string, size_t> group_index_;
  BlockMerkle merkle_;
  std::vector<SideFile> side_files_;
  Tensor current_;
  std::unique_ptr<MerkleTree> tree_;
};

}  // namespace doppler::rdrr
