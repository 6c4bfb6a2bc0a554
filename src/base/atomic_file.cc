// write_file_atomically(): a reader sees the old file or the whole new one, never a part.
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstring>
#include <filesystem>

#include "base/byte_source.h"

namespace doppler {
namespace {

bool write_all(int fd, std::span<const std::byte> bytes) {
  while (!bytes.empty()) {
    const ssize_t wrote = ::write(fd, bytes.data(), bytes.size());
    if (wrote < 0 && errno == EINTR) continue;
    if (wrote < 0) return false;
    bytes = bytes.subspan(static_cast<size_t>(wrote));
  }
  return true;
}

/// Makes the rename itself durable. Some file systems refuse to sync a folder; the data is safe then too.
void sync_folder(const std::string& path) {
  std::string folder = std::filesystem::path(path).parent_path().string();
  if (folder.empty()) folder = ".";
  const int fd = ::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (fd < 0) return;
  ::fsync(fd);
  ::close(fd);
}

}  // namespace

Result<void> write_file_atomically(const std::string& path, std::span<const std::byte> bytes) {
  static std::atomic<unsigned> counter{0};
  const std::string temporary = fmt::format("{}.{}-{}.tmp", path, ::getpid(), counter++);
  const int fd = ::open(temporary.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0644);
  if (fd < 0) return fail(ErrorCode::kIo, "[file] cannot create {}: {}", temporary, std::strerror(errno));
  bool good = write_all(fd, bytes) && ::fsync(fd) == 0;
  int error = errno;
  if (::close(fd) != 0 && good) {
    good = false;
    error = errno;
  }
  if (good && ::rename(temporary.c_str(), path.c_str()) != 0) {
    good = false;
    error = errno;
  }
  if (!good) {
    ::unlink(temporary.c_str());
    return fail(ErrorCode::kIo, "[file] cannot write {} bytes to {}: {}", bytes.size(), path,
                std::strerror(error));
  }
  sync_folder(path);
  return {};
}

}  // namespace doppler
