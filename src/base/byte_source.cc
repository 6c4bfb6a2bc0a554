#include "base/byte_source.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <utility>

namespace doppler {
namespace {

/// One file of a mapping, remembered so that a later shrink is noticed before it becomes a SIGBUS.
struct MappedFile {
  std::string path;
  dev_t device = 0;
  ino_t inode = 0;
  uint64_t start = 0;  // in the mapping
  uint64_t size = 0;
};

class Descriptor {
 public:
  // O_NONBLOCK: opening a named pipe that nobody writes to would wait for ever. Files do not heed it.
  explicit Descriptor(const std::string& path)
      : fd_(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK)) {}
  ~Descriptor() {
    if (fd_ >= 0) ::close(fd_);
  }
  Descriptor(const Descriptor&) = delete;
  Descriptor& operator=(const Descriptor&) = delete;
  int get() const { return fd_; }

 private:
  int fd_;
};

tl::unexpected<Error> os_error(std::string_view what, const std::string& path, int error) {
  if (error == ENOENT || error == ENOTDIR)
    return fail(ErrorCode::kNotFound, "[file] {} does not exist; check the path", path);
  return fail(ErrorCode::kIo, "[file] {} {}: {}", what, path, std::strerror(error));
}

tl::unexpected<Error> not_regular_error(const std::string& path) {
  return fail(ErrorCode::kBadInput, "[file] a regular file was wanted, {} is a device or pipe", path);
}

/// Size and identity of an open file that can be mapped.
Result<MappedFile> describe(const Descriptor& file, const std::string& path, int open_error) {
  if (file.get() < 0) return os_error("cannot open", path, open_error);
  struct stat info{};
  if (::fstat(file.get(), &info) != 0) return os_error("cannot read the size of", path, errno);
  if (S_ISDIR(info.st_mode))
    return fail(ErrorCode::kBadInput, "[file] a file was wanted, {} is a directory", path);
  if (!S_ISREG(info.st_mode)) return not_regular_error(path);
  if (info.st_size <= 0) return fail(ErrorCode::kBadFile, "[file] {} is empty; fetch it again", path);
  return MappedFile{path, info.st_dev, info.st_ino, 0, static_cast<uint64_t>(info.st_size)};
}

bool outside(uint64_t offset, uint64_t length, uint64_t size) {
  return offset > size || length > size - offset;
}

/// An address range holding one file or several, one after the other. Unmapped when destroyed.
class Mapping final : public ByteSource {
 public:
  Mapping(std::string name, std::byte* base, uint64_t size, std::vector<MappedFile> files)
      : name_(std::move(name)), base_(base), size_(size), files_(std::move(files)) {}
  ~Mapping() override { ::munmap(base_, size_); }
  Mapping(const Mapping&) = delete;
  Mapping& operator=(const Mapping&) = delete;

  uint64_t size() const override { return size_; }
  const std::string& name() const override { return name_; }

  Result<std::span<const std::byte>> view(uint64_t offset, uint64_t length) const override {
    if (outside(offset, length, size_))
      return fail(ErrorCode::kBadFile, "[file] {} bytes wanted at {}, {} has {}", length, offset, name_,
                  size_);
    for (const MappedFile& file : files_) {
      if (file.start >= offset + length || file.start + file.size <= offset) continue;
      DOPPLER_CHECK_OK(check_size(file));
    }
    return std::span<const std::byte>(base_ + offset, length);
  }

  void release(uint64_t offset, uint64_t length) const override {
    if (outside(offset, length, size_) || length == 0) return;
    // Rounded outwards: a neighbour's page that leaves too comes back from the page cache when touched.
    const uint64_t first = offset / page_size() * page_size();
    ::madvise(base_ + first, offset + length - first, MADV_DONTNEED);
  }

 private:
  /// A file that vanished or was replaced keeps its mapped pages; only one cut short in place does not.
  static Result<void> check_size(const MappedFile& file) {
    struct stat now{};
    if (::stat(file.path.c_str(), &now) != 0) return {};
    if (now.st_dev == file.device && now.st_ino == file.inode &&
        static_cast<uint64_t>(now.st_size) < file.size)
      return fail(ErrorCode::kIo, "[file] {} had {} bytes when opened, has {} now; load it again", file.path,
                  file.size, now.st_size);
    return {};
  }

  std::string name_;
  std::byte* base_;
  uint64_t size_;
  std::vector<MappedFile> files_;
};

class MemorySource final : public ByteSource {
 public:
  MemorySource(std::string name, std::vector<std::byte> bytes)
      : name_(std::move(name)), bytes_(std::move(bytes)) {}
  uint64_t size() const override { return bytes_.size(); }
  const std::string& name() const override { return name_; }
  Result<std::span<const std::byte>> view(uint64_t offset, uint64_t length) const override {
    if (outside(offset, length, bytes_.size()))
      return fail(ErrorCode::kBadFile, "[file] {} bytes wanted at {}, {} has {}", length, offset, name_,
                  bytes_.size());
    return std::span<const std::byte>(bytes_).subspan(offset, length);
  }
  void release(uint64_t, uint64_t) const override {}

 private:
  std::string name_;
  std::vector<std::byte> bytes_;
};

uint64_t round_up_to_page(uint64_t bytes) { return (bytes + page_size() - 1) / page_size() * page_size(); }

}  // namespace

uint64_t page_size() {
  static const uint64_t size = static_cast<uint64_t>(::sysconf(_SC_PAGESIZE));
  return size;
}

Result<std::unique_ptr<ByteSource>> open_file(const std::string& path) { return open_files({path}); }

Result<std::unique_ptr<ByteSource>> open_files(const std::vector<std::string>& paths) {
  if (paths.empty()) return fail(ErrorCode::kBadInput, "[file] at least one file wanted, got none");
  std::vector<MappedFile> files;
  uint64_t total = 0;
  for (const std::string& path : paths) {
    const Descriptor descriptor(path);
    DOPPLER_TRY(MappedFile file, describe(descriptor, path, errno));
    if (total % page_size() != 0)
      return fail(ErrorCode::kBadInput, "[file] {} has {} bytes, not a multiple of the page size {}",
                  files.back().path, files.back().size, page_size());
    file.start = total;
    total += file.size;
    files.push_back(std::move(file));
  }

  // Reserve the whole range first, so that no other mapping can land between two files.
  void* reserved = ::mmap(nullptr, round_up_to_page(total), PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (reserved == MAP_FAILED)
    return fail(ErrorCode::kOutOfMemory, "[file] no address range of {} bytes for {}: {}", total,
                paths.front(), std::strerror(errno));
  auto mapping = std::make_unique<Mapping>(paths.front(), static_cast<std::byte*>(reserved), total, files);
  for (const MappedFile& file : files) {
    const Descriptor descriptor(file.path);
    DOPPLER_TRY(const MappedFile now, describe(descriptor, file.path, errno));
    if (now.size != file.size)
      return fail(ErrorCode::kIo, "[file] {} changed from {} to {} bytes while it was opened; try again",
                  file.path, file.size, now.size);
    void* wanted = static_cast<std::byte*>(reserved) + file.start;
    if (::mmap(wanted, file.size, PROT_READ, MAP_PRIVATE | MAP_FIXED, descriptor.get(), 0) == MAP_FAILED)
      return os_error("cannot map", file.path, errno);
  }
  return mapping;
}

std::unique_ptr<ByteSource> memory_source(std::string name, std::vector<std::byte> bytes) {
  return std::make_unique<MemorySource>(std::move(name), std::move(bytes));
}

Result<std::string> read_text_file(const std::string& path, uint64_t limit_bytes) {
  const Descriptor file(path);
  if (file.get() < 0) return os_error("cannot open", path, errno);
  struct stat info{};
  if (::fstat(file.get(), &info) == 0 && !S_ISREG(info.st_mode) && !S_ISDIR(info.st_mode))
    return not_regular_error(path);
  std::string text;
  std::vector<char> buffer(64 * 1024);
  for (;;) {
    const ssize_t got = ::read(file.get(), buffer.data(), buffer.size());
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return os_error("cannot read", path, errno);
    if (got == 0) return text;
    if (static_cast<uint64_t>(got) > limit_bytes - text.size())
      return fail(ErrorCode::kBadFile, "[file] at most {} bytes wanted, {} is longer", limit_bytes, path);
    text.append(buffer.data(), static_cast<size_t>(got));
  }
}

}  // namespace doppler
