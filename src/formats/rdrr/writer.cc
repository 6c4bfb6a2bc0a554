#include "formats/rdrr/writer.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <filesystem>

#include "base/byte_source.h"
#include "formats/rdrr/manifest_check.h"

namespace doppler::rdrr {
namespace {

constexpr uint64_t kMinShardBytes = 4096;
constexpr size_t kMaxShards = 100000;  // five digits in a file name
// Tensors begin at multiples of this in the concatenation, so that mapped floats can be read in place.
constexpr uint64_t kAlignment = 32;

tl::unexpected<Error> os_error(std::string_view what, const std::string& path, int error) {
  return fail(ErrorCode::kIo, "[convert] cannot {} {}: {}{}", what, path, std::strerror(error),
              error == ENOSPC || error == EDQUOT ? "; free some space or choose another place" : "");
}

std::string group_type(std::string_view id) {
  if (id.find(".expert.") != std::string_view::npos) return "expert";
  if (id.ends_with(".shared")) return "shared";
  if (id.starts_with("layer.")) return "layer";
  if (id == "embed" || id == "head") return std::string(id);
  return "shared";
}

}  // namespace

std::string manifest_dtype(DType dtype) {
  return dtype == DType::kQ4_K ? "Q4_K_M" : std::string(dtype_name(dtype));
}

Result<std::unique_ptr<Writer>> Writer::create(const std::string& directory, const WriterOptions& options) {
  if (options.shard_size_bytes < kMinShardBytes)
    return fail(ErrorCode::kBadInput,
                "[convert] shards of at least {} bytes wanted, got {}; raise --shard-size", kMinShardBytes,
                options.shard_size_bytes);
  std::string path = directory;
  while (path.size() > 1 && path.back() == '/') path.pop_back();
  std::error_code error;
  const std::filesystem::file_status status = std::filesystem::status(path, error);
  const bool exists = std::filesystem::exists(status);
  // A link that leads nowhere cannot be replaced by the finished directory: refused before the work.
  const bool broken_link = !exists && std::filesystem::is_symlink(path, error);
  if (path.empty() || broken_link ||
      (exists && (!std::filesystem::is_directory(status) || !std::filesystem::is_empty(path, error))))
    return fail(ErrorCode::kBadInput,
                "[convert] a new or empty directory wanted, \"{}\" is {}; choose another name or remove it",
                path,
                path.empty()                            ? "no name"
                : broken_link                           ? "a link that leads nowhere"
                : std::filesystem::is_directory(status) ? "not empty"
                                                        : "a file");
  std::string temporary = path + ".partial-XXXXXX";
  if (!::mkdtemp(temporary.data())) return os_error("create the directory", temporary, errno);
  std::filesystem::permissions(temporary, std::filesystem::perms(0755), error);
  return std::unique_ptr<Writer>(new Writer(path, temporary, options));
}

Writer::~Writer() {
  if (fd_ >= 0) ::close(fd_);
  std::error_code error;
  if (!finished_) std::filesystem::remove_all(temporary_, error);
}

Result<void> Writer::open_shard() {
  if (shards_.size() >= kMaxShards)
    return fail(ErrorCode::kBadInput, "[convert] more than {} shards; raise --shard-size", kMaxShards);
  Shard shard;
  shard.filename = fmt::format("shard_{:05}.bin", shards_.size());
  shard.offset = total_;
  const std::string path = temporary_ + "/" + shard.filename;
  fd_ = ::open(path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0644);
  if (fd_ < 0) return os_error("create", path, errno);
  shard_hasher_ = make_hasher(options_.hash);
  shards_.push_back(std::move(shard));
  return {};
}

Result<void> Writer::close_shard() {
  if (fd_ < 0) return {};
  const bool synced = ::fsync(fd_) == 0;
  const int sync_error = errno;
  const bool closed = ::close(fd_) == 0;
  const int close_error = errno;
  fd_ = -1;
  const std::string path = temporary_ + "/" + shards_.back().filename;
  if (!synced) return os_error("write", path, sync_error);
  if (!closed) return os_error("write", path, close_error);
  shards_.back().hash = hex(shard_hasher_->finish());
  return {};
}

Result<void> Writer::write(std::span<const std::byte> bytes, std::vector<Span>* spans) {
  while (!bytes.empty()) {
    if (fd_ >= 0 && shards_.back().size == options_.shard_size_bytes) DOPPLER_CHECK_OK(close_shard());
    if (fd_ < 0) DOPPLER_CHECK_OK(open_shard());
    Shard& shard = shards_.back();
    const size_t room =
        static_cast<size_t>(std::min<uint64_t>(bytes.size(), options_.shard_size_bytes - shard.size));
    const ssize_t wrote = ::write(fd_, bytes.data(), room);
    if (wrote < 0) {
      if (errno == EINTR) continue;
      return os_error("write", directory_ + "/" + shard.filename, errno);
    }
    const size_t count = static_cast<size_t>(wrote);
    shard_hasher_->update(bytes.first(count));
    if (spans) {
      const uint32_t index = static_cast<uint32_t>(shards_.size() - 1);
      if (spans->empty() || spans->back().shard != index) spans->push_back({index, shard.size, 0});
      spans->back().size += count;
    }
    shard.size += count;
    total_ += count;
    bytes = bytes.subspan(count);
  }
  return {};
}

Result<void> Writer::pad(uint64_t alignment) {
  static constexpr std::byte kZeros[kAlignment] = {};
  const uint64_t beyond = total_ % alignment;
  if (beyond == 0) return {};
  return write(std::span(kZeros).first(static_cast<size_t>(alignment - beyond)), nullptr);
}

Group& Writer::open_group(const std::string& id) {
  const auto [at, fresh] = group_index_.emplace(id, groups_.size());
  if (!fresh) return groups_[at->second].group;
  Group group;
  group.id = id;
  group.type = group_type(id);
  group.version = "1.0.0";
  if (id.starts_with("layer.")) group.layer_index = std::strtoull(id.c_str() + 6, nullptr, 10);
  const size_t expert = id.find(".expert.");
  if (expert != std::string::npos) group.expert_index = std::strtoull(id.c_str() + expert + 8, nullptr, 10);
  groups_.push_back({std::move(group), make_hasher(options_.hash)});
  return groups_.back().group;
}

void Writer::add_shard_group(const std::string& id, std::span<const std::string> tensors) {
  Group& group = open_group(id);
  for (const Tensor& tensor : tensors_)
    if (std::find(tensors.begin(), tensors.end(), tensor.name) != tensors.end())
      for (const Span& span : tensor.spans) group.shards.push_back(span.shard);
}

Result<void> Writer::begin_tensor(NewTensor tensor) {
  const std::optional<uint64_t> size = stored_bytes(tensor.dtype, tensor.shape);
  if (!size || *size == 0)
    return fail(ErrorCode::kBadInput, "[convert] tensor \"{}\" has an impossible shape", tensor.name);
  DOPPLER_CHECK_OK(pad(kAlignment));
  current_ = Tensor();
  current_.name = std::move(tensor.name);
  current_.dtype = manifest_dtype(tensor.dtype);
  current_.shape = std::move(tensor.shape);
  current_.role = std::move(tensor.role);
  current_.group = std::move(tensor.group);
  if (dtype_info(tensor.dtype).block_elems > 1) current_.layout = "row";
  current_.size = *size;
  tree_ = std::make_unique<MerkleTree>(kMerkleBlockBytes);
  open_group(current_.group);
  return {};
}

Result<void> Writer::append(std::span<const std::byte> bytes) {
  tree_->update(bytes);
  groups_[group_index_[current_.group]].hasher->update(bytes);
  return write(bytes, &current_.spans);
}

Result<void> Writer::end_tensor() {
  uint64_t written = 0;
  for (const Span& span : current_.spans) written += span.size;
  if (written != current_.size)
    return fail(ErrorCode::kBadInput, "[convert] tensor \"{}\" should have {} bytes, got {}", current_.name,
                current_.size, written);
  Group& group = groups_[group_index_[current_.group]].group;
  group.tensors.push_back(current_.name);
  for (const Span& span : current_.spans) group.shards.push_back(span.shard);
  merkle_.roots.emplace_back(current_.name, tree_->root());
  tensors_.push_back(std::move(current_));
  return {};
}

Result<void> Writer::add_file(const std::string& filename, std::string_view text) {
  const std::span<const std::byte> bytes = std::as_bytes(std::span(text.data(), text.size()));
  DOPPLER_CHECK_OK(write_file_atomically(temporary_ + "/" + filename, bytes));
  side_files_.push_back({filename, text.size(), hash_hex(options_.hash, bytes)});
  return {};
}

void Writer::fill_groups(Manifest& manifest) {
  manifest.groups.clear();
  for (OpenGroup& open : groups_) {
    std::vector<uint32_t>& shards = open.group.shards;
    std::sort(shards.begin(), shards.end());
    shards.erase(std::unique(shards.begin(), shards.end()), shards.end());
    open.group.hash = hex(open.hasher->finish());
    manifest.groups.push_back(std::move(open.group));
  }
}

Result<void> Writer::finish(Manifest manifest) {
  DOPPLER_CHECK_OK(close_shard());
  if (shards_.empty()) return fail(ErrorCode::kBadInput, "[convert] the model has no tensors");
  manifest.hash = options_.hash;
  manifest.total_size = total_;
  manifest.shards = shards_;
  manifest.tensors_file.clear();
  manifest.tensors = tensors_;
  std::sort(manifest.tensors.begin(), manifest.tensors.end(),
            [](const Tensor& a, const Tensor& b) { return a.name < b.name; });
  fill_groups(manifest);
  merkle_.block_size = kMerkleBlockBytes;
  manifest.merkle = merkle_;
  manifest.side_files = side_files_;
  const std::string text = to_json(manifest);
  // What was written must read back: a name or digest this project's own reader refuses is found here.
  DOPPLER_TRY(const Manifest parsed, parse_manifest(text, directory_ + "/manifest.json"));
  DOPPLER_CHECK_OK(write_file_atomically(fmt::format("{}/{}", temporary_, kManifestFile),
                                         std::as_bytes(std::span(text.data(), text.size()))));
  if (::rename(temporary_.c_str(), directory_.c_str()) != 0)
    return os_error("rename the finished directory to", directory_, errno);
  finished_ = true;
  return {};
}

}  // namespace doppler::rdrr
