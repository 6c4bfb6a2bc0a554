// A folder of safetensors files as one source of tensors.
#include <algorithm>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <set>

#include "base/text.h"
#include "formats/safetensors/safetensors.h"

namespace doppler::safetensors {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::json;

constexpr uint64_t kMaxIndexBytes = 64u << 20;  // DeepSeek-V3's, with 91,000 tensors, has 9 MB
constexpr const char* kIndexName = "model.safetensors.index.json";
constexpr const char* kSingleName = "model.safetensors";

bool is_there(const fs::path& path) {
  std::error_code error;
  return fs::exists(path, error);
}

// The *.safetensors files of a directory, by name.
std::vector<std::string> weight_files(const std::string& directory) {
  std::vector<std::string> names;
  std::error_code error;
  for (fs::directory_iterator it(directory, error), end; !error && it != end; it.increment(error))
    if (it->path().extension() == ".safetensors") names.push_back(it->path().filename().string());
  std::sort(names.begin(), names.end());
  return names;
}

bool is_plain_name(const std::string& name) {
  return !name.empty() && name != "." && name != ".." && name.find_first_of("/\\") == std::string::npos &&
         name.find('\0') == std::string::npos;
}

/// Tensor name -> file name, as the index says.
Result<std::map<std::string, std::string>> read_index(const std::string& path) {
  DOPPLER_TRY(const std::string text, read_text_file(path, kMaxIndexBytes));
  const Json json = Json::parse(text, nullptr, false);
  if (!json.is_object() || !json.contains("weight_map") || !json["weight_map"].is_object())
    return fail(ErrorCode::kBadFile, "[safetensors] {}: a JSON object with \"weight_map\" wanted", path);
  std::map<std::string, std::string> map;
  for (const auto& [tensor, file] : json["weight_map"].items()) {
    if (!file.is_string() || !is_plain_name(file.get_ref<const std::string&>()))
      return fail(ErrorCode::kBadFile, "[safetensors] {}: the name of a file in this folder wanted for {}",
                  path, printable(tensor));
    map.emplace(tensor, file.get_ref<const std::string&>());
  }
  return map;
}

}  // namespace

Result<std::unique_ptr<SafetensorsFolder>> SafetensorsFolder::open(const std::string& directory) {
  auto folder = std::make_unique<SafetensorsFolder>();
  folder->path_ = directory;
  const std::string index = (fs::path(directory) / kIndexName).string();
  std::map<std::string, std::string> wanted;
  std::set<std::string> names;
  if (is_there(index)) {
    DOPPLER_TRY(wanted, read_index(index));
    for (const auto& [tensor, file] : wanted) names.insert(file);
  } else {
    const std::vector<std::string> found = weight_files(directory);
    if (is_there(fs::path(directory) / kSingleName)) {
      names.insert(kSingleName);
    } else if (found.size() == 1) {
      names.insert(found.front());
    } else {
      return fail(ErrorCode::kNotFound,
                  "[safetensors] {}: {}, {} or a single .safetensors file wanted, got {} such files",
                  directory, kSingleName, kIndexName, found.size());
    }
  }
  for (const std::string& name : names) DOPPLER_CHECK_OK(folder->add_file(name));
  for (const auto& [tensor, file] : wanted) {
    const TensorInfo* info = folder->find(tensor);
    if (!info || folder->files_[folder->file_of(*info)]->name() != (fs::path(directory) / file).string())
      return fail(ErrorCode::kBadFile, "[safetensors] {}: tensor {} in {} wanted, it is not there", index,
                  printable(tensor), printable(file));
  }
  return folder;
}

Result<void> SafetensorsFolder::add_file(const std::string& name) {
  DOPPLER_TRY(std::unique_ptr<ByteSource> file, open_file((fs::path(path_) / name).string()));
  DOPPLER_TRY(Header header, read_header(*file));
  const uint64_t base = files_.empty() ? 0 : bases_.back() + files_.back()->size();
  for (TensorInfo& info : header.tensors) {
    if (!index_.emplace(info.name, tensors_.size()).second)
      return fail(ErrorCode::kBadFile, "[safetensors] {}: each tensor in one file wanted, {} is in two",
                  path_, printable(info.name));
    info.offset += base;
    tensors_.push_back(std::move(info));
  }
  bases_.push_back(base);
  files_.push_back(std::move(file));
  return {};
}

const TensorInfo* SafetensorsFolder::find(std::string_view name) const {
  const auto found = index_.find(name);
  return found == index_.end() ? nullptr : &tensors_[found->second];
}

size_t SafetensorsFolder::file_of(const TensorInfo& tensor) const {
  return static_cast<size_t>(std::upper_bound(bases_.begin(), bases_.end(), tensor.offset) - bases_.begin()) -
         1;
}

Result<TensorBytes> SafetensorsFolder::bytes(const TensorInfo& tensor) const {
  const size_t file = file_of(tensor);
  DOPPLER_TRY(const auto data, files_[file]->view(tensor.offset - bases_[file], tensor.size_bytes));
  return TensorBytes{data, nullptr};
}

void SafetensorsFolder::release(const TensorInfo& tensor) const {
  const size_t file = file_of(tensor);
  files_[file]->release(tensor.offset - bases_[file], tensor.size_bytes);
}

bool is_hugging_face_folder(const std::string& directory) {
  return is_there(fs::path(directory) / "config.json") &&
         (is_there(fs::path(directory) / kIndexName) || !weight_files(directory).empty());
}

}  // namespace doppler::safetensors
