#include "formats/rdrr/verify.h"

#include <algorithm>
#include <filesystem>

#include "base/byte_source.h"
#include "base/hash.h"
#include "formats/rdrr/manifest.h"
#include "formats/rdrr/merkle.h"

namespace doppler::rdrr {
namespace {

constexpr uint64_t kChunkBytes = 4u << 20;

class Verifier {
 public:
  Verifier(std::string directory, Manifest manifest, const Progress& progress)
      : directory_(std::move(directory)), manifest_(std::move(manifest)), progress_(progress) {
    report_.hash = hash_name(manifest_.hash);
    report_.tensors = manifest_.tensors.size();
    total_ = manifest_.total_size;
    if (manifest_.merkle) total_ += manifest_.total_size;
    if (!manifest_.groups.empty()) total_ += manifest_.total_size;
  }

  Result<VerifyReport> run() {
    shards_.resize(manifest_.shards.size());
    for (size_t i = 0; i < manifest_.shards.size(); ++i) DOPPLER_CHECK_OK(check_shard(i));
    for (const SideFile& file : manifest_.side_files) check_side_file(file);
    // Digests of tensors only tell more where the shards themselves are whole.
    if (report_.ok()) DOPPLER_CHECK_OK(check_roots());
    if (report_.ok()) DOPPLER_CHECK_OK(check_groups());
    return std::move(report_);
  }

 private:
  void problem(std::string where, std::string message) {
    report_.problems.push_back({std::move(where), std::move(message)});
  }

  /// Feeds bytes [offset, offset + size) of a shard to `sink` and tells the progress.
  template <class Sink>
  Result<void> stream(const ByteSource& source, uint64_t offset, uint64_t size, std::string_view what,
                      Sink&& sink) {
    for (uint64_t at = 0; at < size; at += kChunkBytes) {
      const uint64_t take = std::min(kChunkBytes, size - at);
      DOPPLER_TRY(const std::span<const std::byte> bytes, source.view(offset + at, take));
      sink(bytes);
      source.release(offset + at, take);
      done_ += take;
      if (progress_ && !progress_(what, done_, total_))
        return fail(ErrorCode::kCancelled, "[verify] stopped");
    }
    return {};
  }

  Result<void> check_shard(size_t index) {
    const Shard& shard = manifest_.shards[index];
    const std::string path = directory_ + "/" + shard.filename;
    ++report_.shards;
    std::error_code error;
    if (!std::filesystem::is_regular_file(path, error)) {
      problem(shard.filename, "missing");
      return {};
    }
    const uint64_t size = std::filesystem::file_size(path, error);
    if (error || size != shard.size) {
      problem(shard.filename, fmt::format("{}: {} bytes wanted, got {}",
                                          size < shard.size ? "truncated" : "too long", shard.size, size));
      return {};
    }
    Result<std::unique_ptr<ByteSource>> source = open_file(path);
    if (!source) {
      problem(shard.filename, source.error().message);
      return {};
    }
    const std::unique_ptr<Hasher> hasher = make_hasher(manifest_.hash);
    DOPPLER_CHECK_OK(stream(**source, 0, shard.size, shard.filename,
                            [&](std::span<const std::byte> bytes) { hasher->update(bytes); }));
    report_.bytes += shard.size;
    const std::string got = hex(hasher->finish());
    if (got != shard.hash)
      problem(shard.filename, fmt::format("{} {} wanted, got {}", report_.hash, shard.hash, got));
    shards_[index] = std::move(*source);
    return {};
  }

  void check_side_file(const SideFile& file) {
    const std::string path = directory_ + "/" + file.filename;
    const Result<std::string> got = hash_file_hex(manifest_.hash, path);
    if (!got)
      problem(file.filename, got.error().message);
    else if (*got != file.hash)
      problem(file.filename, fmt::format("{} {} wanted, got {}", report_.hash, file.hash, *got));
    else
      report_.bytes += file.size;
  }

  template <class Sink>
  Result<void> stream_tensor(const Tensor& tensor, Sink&& sink) {
    for (const Span& span : tensor.spans)
      DOPPLER_CHECK_OK(stream(*shards_[span.shard], span.offset, span.size, tensor.name, sink));
    return {};
  }

  Result<void> check_roots() {
    if (!manifest_.merkle) return {};
    for (const auto& [name, root] : manifest_.merkle->roots) {
      MerkleTree tree(manifest_.merkle->block_size);
      DOPPLER_CHECK_OK(stream_tensor(*manifest_.find(name),
                                     [&](std::span<const std::byte> bytes) { tree.update(bytes); }));
      ++report_.roots;
      const std::string got = tree.root();
      if (got != root) problem(name, fmt::format("block tree {} wanted, got {}", root, got));
    }
    return {};
  }

  Result<void> check_groups() {
    for (const Group& group : manifest_.groups) {
      const std::unique_ptr<Hasher> hasher = make_hasher(manifest_.hash);
      for (const std::string& name : group.tensors)
        DOPPLER_CHECK_OK(stream_tensor(*manifest_.find(name),
                                       [&](std::span<const std::byte> bytes) { hasher->update(bytes); }));
      ++report_.groups;
      const std::string got = hex(hasher->finish());
      if (got != group.hash)
        problem("group " + group.id, fmt::format("{} {} wanted, got {}", report_.hash, group.hash, got));
    }
    return {};
  }

  std::string directory_;
  Manifest manifest_;
  const Progress& progress_;
  std::vector<std::unique_ptr<ByteSource>> shards_;
  VerifyReport report_;
  uint64_t done_ = 0, total_ = 0;
};

}  // namespace

std::string VerifyReport::summary() const {
  if (ok()) return "";
  std::string line = fmt::format("[verify] {}: {}", problems.front().where, problems.front().message);
  if (problems.size() > 1) line += fmt::format(" (and {} more)", problems.size() - 1);
  return line + "; copy or convert the model again";
}

Result<VerifyReport> verify(const std::string& directory, const Progress& progress) {
  DOPPLER_TRY(Manifest manifest, read_manifest(directory));
  return Verifier(directory, std::move(manifest), progress).run();
}

}  // namespace doppler::rdrr
