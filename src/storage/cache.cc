#include "storage/cache.h"

#include <pwd.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <optional>
#include <system_error>

namespace doppler::storage {
namespace {

namespace fs = std::filesystem;

std::optional<std::string> variable(const char* name) {
  const char* value = std::getenv(name);
  if (value == nullptr || *value == '\0') return std::nullopt;
  return value;
}

/// Other programs run in other folders, so a path is made absolute as soon as it is known.
std::string absolute(const std::string& path) {
  std::error_code error;
  const fs::path result = fs::absolute(path, error);
  return error ? path : result.lexically_normal().string();
}

/// Bytes of a file, or of everything in a folder. What cannot be read counts as nothing.
uint64_t bytes_on_disk(const fs::path& path) {
  std::error_code error;
  if (!fs::is_directory(path, error)) {
    const uint64_t size = fs::file_size(path, error);
    return error ? 0 : size;
  }
  uint64_t total = 0;
  for (fs::recursive_directory_iterator item(path, error), end; !error && item != end;
       item.increment(error)) {
    std::error_code no_size;
    const uint64_t size = item->is_regular_file(no_size) ? item->file_size(no_size) : 0;
    if (!no_size) total += size;
  }
  return total;
}

bool is_catalogue_file(std::string_view file_name) {
  const auto entries = catalogue();
  return std::any_of(entries.begin(), entries.end(),
                     [&](const CatalogueEntry& entry) { return entry.file_name == file_name; });
}

}  // namespace

Result<std::string> cache_folder() {
  if (auto folder = variable("DOPPLER_CACHE")) return absolute(*folder);
  // A relative XDG_CACHE_HOME is to be ignored: XDG Base Directory Specification 0.8, "Basics".
  if (auto folder = variable("XDG_CACHE_HOME"); folder && folder->front() == '/') return *folder + "/doppler";
  if (auto home = variable("HOME")) return *home + "/.cache/doppler";
  if (const passwd* user = getpwuid(getuid()); user != nullptr && user->pw_dir != nullptr)
    return std::string(user->pw_dir) + "/.cache/doppler";
  return fail(ErrorCode::kNotFound,
              "[cache] a home folder wanted, none is known; set DOPPLER_CACHE to a folder");
}

Result<std::string> models_folder() {
  if (auto folder = variable("DOPPLER_MODELS")) return absolute(*folder);
  DOPPLER_TRY(const std::string cache, cache_folder());
  return cache + "/models";
}

Result<std::vector<CachedModel>> list_models() {
  DOPPLER_TRY(const std::string folder, models_folder());
  std::vector<CachedModel> models;
  for (const CatalogueEntry& entry : catalogue()) {
    DOPPLER_TRY(const std::string found, cached_path(entry));
    models.push_back({std::string(entry.name), folder + "/" + std::string(entry.file_name),
                      std::string(entry.summary), entry.bytes, !found.empty(), true});
  }
  const auto first_other = static_cast<std::ptrdiff_t>(models.size());
  std::error_code error;
  for (fs::directory_iterator item(folder, error), end; !error && item != end; item.increment(error)) {
    const std::string name = item->path().filename().string();
    if (name.starts_with('.') || is_catalogue_file(name)) continue;
    models.push_back({name, item->path().string(), "", bytes_on_disk(item->path()), true, false});
  }
  std::sort(models.begin() + first_other, models.end(),
            [](const CachedModel& a, const CachedModel& b) { return a.name < b.name; });
  return models;
}

Result<std::string> cached_path(const CatalogueEntry& entry) {
  DOPPLER_TRY(const std::string folder, models_folder());
  const std::string path = folder + "/" + std::string(entry.file_name);
  const auto has_size = [](const fs::path& file, uint64_t bytes) {
    std::error_code error;
    const uint64_t size = fs::file_size(file, error);
    return !error && size == bytes;
  };
  const bool whole = entry.files.empty()
                         ? has_size(path, entry.bytes)
                         : std::all_of(entry.files.begin(), entry.files.end(), [&](const FolderFile& file) {
                             return has_size(fs::path(path) / file.path, file.bytes);
                           });
  return whole ? path : std::string();
}

Result<std::string> resolve_model(std::string_view name_or_path) {
  std::error_code error;
  if (fs::exists(name_or_path, error)) return std::string(name_or_path);
  if (const CatalogueEntry* entry = find_entry(name_or_path)) {
    DOPPLER_TRY(std::string path, cached_path(*entry));
    if (!path.empty()) return path;
    return fail(ErrorCode::kNotFound, "[models] {} is not in the cache; run `doppler pull {}`", name_or_path,
                name_or_path);
  }
  DOPPLER_TRY(const std::string folder, models_folder());
  const std::string in_cache = folder + "/" + std::string(name_or_path);
  if (!name_or_path.empty() && !name_or_path.starts_with('/') && fs::exists(in_cache, error)) return in_cache;
  return fail(ErrorCode::kNotFound,
              "[models] a path or a name of the catalogue wanted, got '{}'; `doppler list` shows the names",
              name_or_path);
}

Result<uint64_t> remove_model(std::string_view name) {
  const CatalogueEntry* entry = find_entry(name);
  const std::string file(entry != nullptr ? entry->file_name : name);
  if (file.empty() || file.starts_with('.') || file.find('/') != std::string::npos) {
    return fail(ErrorCode::kBadInput,
                "[models] a name wanted, got '{}'; `doppler list` shows what can be removed", name);
  }
  DOPPLER_TRY(const std::string folder, models_folder());
  const fs::path path = fs::path(folder) / file;
  std::error_code error;
  if (!fs::exists(fs::symlink_status(path, error)))
    return fail(ErrorCode::kNotFound, "[models] nothing named {} in {}", name, folder);
  const uint64_t bytes = fs::is_symlink(path, error) ? 0 : bytes_on_disk(path);
  fs::remove_all(path, error);
  if (error) return fail(ErrorCode::kIo, "[models] {} cannot be removed: {}", path.string(), error.message());
  return bytes;
}

}  // namespace doppler::storage
