#include "formats/rdrr/rdrr.h"

#include <cstring>
#include <filesystem>

namespace doppler::rdrr {
namespace {

constexpr uint64_t kMaxTokenizerBytes = 256u << 20;
constexpr uint64_t kMaxTemplateBytes = 4u << 20;

/// True if the spans follow one another in the concatenation of the shards.
bool is_contiguous(const Tensor& tensor, const Manifest& manifest) {
  for (size_t i = 1; i < tensor.spans.size(); ++i) {
    const Span &before = tensor.spans[i - 1], &span = tensor.spans[i];
    if (manifest.shards[before.shard].offset + before.offset + before.size !=
        manifest.shards[span.shard].offset + span.offset)
      return false;
  }
  return true;
}

/// What the plain float types need of an address; packed blocks are read byte by byte.
size_t alignment_of(DType dtype) {
  return dtype == DType::kF32 ? 4 : dtype == DType::kF16 || dtype == DType::kBF16 ? 2 : 1;
}

}  // namespace

bool is_rdrr_directory(const std::string& path) {
  std::error_code error;
  return std::filesystem::is_regular_file(fmt::format("{}/{}", path, kManifestFile), error);
}

Result<void> check_shard_files(const std::string& directory, const Manifest& manifest) {
  for (const Shard& shard : manifest.shards) {
    const std::string path = directory + "/" + shard.filename;
    std::error_code error;
    if (!std::filesystem::is_regular_file(path, error))
      return fail(ErrorCode::kNotFound, "[rdrr] shard {} is missing; copy or convert the model again", path);
    const uint64_t size = std::filesystem::file_size(path, error);
    if (error) return fail(ErrorCode::kIo, "[rdrr] shard {}: {}", path, error.message());
    if (size != shard.size)
      return fail(ErrorCode::kBadFile,
                  "[rdrr] shard {} is {}: {} bytes wanted, got {}; copy or convert the model again", path,
                  size < shard.size ? "truncated" : "too long", shard.size, size);
  }
  return {};
}

Result<std::unique_ptr<RdrrModel>> RdrrModel::open(const std::string& directory) {
  auto model = std::make_unique<RdrrModel>();
  model->directory_ = directory;
  while (model->directory_.size() > 1 && model->directory_.back() == '/') model->directory_.pop_back();
  DOPPLER_TRY(model->manifest_, read_manifest(model->directory_));
  DOPPLER_CHECK_OK(model->list_tensors());
  DOPPLER_CHECK_OK(check_shard_files(model->directory_, model->manifest_));
  DOPPLER_CHECK_OK(model->map_shards());
  return model;
}

Result<void> RdrrModel::list_tensors() {
  for (const Tensor& tensor : manifest_.tensors) {
    const std::optional<DType> dtype = tensor_dtype(tensor);
    if (!dtype)
      return fail(ErrorCode::kUnsupported,
                  "[rdrr] {}: tensor \"{}\" is stored as {}, which this build cannot read", directory_,
                  tensor.name, tensor.dtype);
    if (tensor.layout == "column" && dtype_info(*dtype).block_elems > 1)
      return fail(ErrorCode::kUnsupported,
                  "[rdrr] {}: tensor \"{}\" is packed by columns; convert the model again with row layout",
                  directory_, tensor.name);
    for (const auto& [key, text] : tensor.extra)
      if (key == "sourceTransform" && text != "null")
        return fail(ErrorCode::kUnsupported,
                    "[rdrr] {}: tensor \"{}\" needs a load-time transform, which is not supported",
                    directory_, tensor.name);
    TensorInfo info;
    info.name = tensor.name;
    info.dtype = *dtype;
    info.shape = tensor.shape;
    info.size_bytes = tensor.size;
    info.offset = manifest_.shards[tensor.spans.front().shard].offset + tensor.spans.front().offset;
    index_.emplace(tensor.name, tensors_.size());
    tensors_.push_back(std::move(info));
  }
  return {};
}

Result<void> RdrrModel::map_shards() {
  std::vector<std::string> paths;
  bool whole_pages = true;
  for (size_t i = 0; i < manifest_.shards.size(); ++i) {
    paths.push_back(directory_ + "/" + manifest_.shards[i].filename);
    if (i + 1 < manifest_.shards.size() && manifest_.shards[i].size % page_size() != 0) whole_pages = false;
  }
  if (whole_pages) {
    DOPPLER_TRY(whole_, open_files(paths));
    return {};
  }
  for (const std::string& path : paths) {
    DOPPLER_TRY(std::unique_ptr<ByteSource> shard, open_file(path));
    shards_.push_back(std::move(shard));
  }
  return {};
}

const TensorInfo* RdrrModel::find(std::string_view name) const {
  const auto at = index_.find(name);
  return at == index_.end() ? nullptr : &tensors_[at->second];
}

Result<std::span<const std::byte>> RdrrModel::view(const Span& span) const {
  if (whole_) return whole_->view(manifest_.shards[span.shard].offset + span.offset, span.size);
  return shards_[span.shard]->view(span.offset, span.size);
}

Result<TensorBytes> RdrrModel::bytes(const TensorInfo& tensor) const {
  const Tensor* entry = manifest_.find(tensor.name);
  if (!entry) return fail(ErrorCode::kNotFound, "[rdrr] {}: no tensor \"{}\"", directory_, tensor.name);
  if (entry->spans.size() == 1 || (whole_ && is_contiguous(*entry, manifest_))) {
    Span all = entry->spans.front();
    all.size = entry->size;
    DOPPLER_TRY(const std::span<const std::byte> data, view(all));
    if (reinterpret_cast<uintptr_t>(data.data()) % alignment_of(tensor.dtype) == 0)
      return TensorBytes{data, nullptr};
  }
  auto owned = std::make_shared<std::vector<std::byte>>(entry->size);
  size_t at = 0;
  for (const Span& span : entry->spans) {
    DOPPLER_TRY(const std::span<const std::byte> part, view(span));
    std::memcpy(owned->data() + at, part.data(), part.size());
    at += part.size();
    if (!whole_) shards_[span.shard]->release(span.offset, span.size);
  }
  return TensorBytes{*owned, owned};
}

void RdrrModel::release(const TensorInfo& tensor) const {
  const Tensor* entry = manifest_.find(tensor.name);
  if (!entry) return;
  for (const Span& span : entry->spans) {
    if (whole_)
      whole_->release(manifest_.shards[span.shard].offset + span.offset, span.size);
    else
      shards_[span.shard]->release(span.offset, span.size);
  }
}

Result<std::string> RdrrModel::tokenizer_text() const {
  if (manifest_.tokenizer.file.empty())
    return fail(ErrorCode::kNotFound, "[rdrr] {}: the manifest names no tokenizer file", directory_);
  return read_text_file(directory_ + "/" + manifest_.tokenizer.file, kMaxTokenizerBytes);
}

Result<std::string> RdrrModel::chat_template() const {
  const std::string path = directory_ + "/chat_template.jinja";
  std::error_code error;
  if (!std::filesystem::exists(path, error)) return std::string();
  return read_text_file(path, kMaxTemplateBytes);
}

}  // namespace doppler::rdrr
