#include "base/hash.h"

#include <fcntl.h>
#include <openssl/evp.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <vector>

#include "base/blake3.h"
#include "base/log.h"

namespace doppler {
namespace {

class Sha256 final : public Hasher {
 public:
  Sha256() : context_(EVP_MD_CTX_new()) {
    require(context_ != nullptr && EVP_DigestInit_ex(context_.get(), EVP_sha256(), nullptr) == 1);
  }
  void update(std::span<const std::byte> bytes) override {
    require(EVP_DigestUpdate(context_.get(), bytes.data(), bytes.size()) == 1);
  }
  std::array<std::byte, 32> finish() override {
    std::array<std::byte, 32> digest{};
    require(EVP_DigestFinal_ex(context_.get(), reinterpret_cast<unsigned char*>(digest.data()), nullptr) ==
            1);
    return digest;
  }

 private:
  /// OpenSSL fails here only without memory or without its default provider: nothing a caller could mend.
  static void require(bool ok) {
    if (ok) return;
    log_line(LogLevel::kError, "[hash] OpenSSL cannot compute SHA-256 on this system");
    std::abort();
  }
  struct Free {
    void operator()(EVP_MD_CTX* context) const { EVP_MD_CTX_free(context); }
  };
  std::unique_ptr<EVP_MD_CTX, Free> context_;
};

}  // namespace

std::optional<HashKind> hash_kind_from_name(std::string_view name) {
  if (name == "sha256") return HashKind::kSha256;
  if (name == "blake3") return HashKind::kBlake3;
  return std::nullopt;
}

std::string_view hash_name(HashKind kind) { return kind == HashKind::kSha256 ? "sha256" : "blake3"; }

std::unique_ptr<Hasher> make_hasher(HashKind kind) {
  if (kind == HashKind::kSha256) return std::make_unique<Sha256>();
  return std::make_unique<Blake3>();
}

std::string hex(std::span<const std::byte> bytes) {
  static constexpr char kDigits[] = "0123456789abcdef";
  std::string text;
  text.reserve(bytes.size() * 2);
  for (const std::byte b : bytes) {
    text += kDigits[std::to_integer<unsigned>(b) >> 4];
    text += kDigits[std::to_integer<unsigned>(b) & 15u];
  }
  return text;
}

std::string hash_hex(HashKind kind, std::span<const std::byte> bytes) {
  const std::unique_ptr<Hasher> hasher = make_hasher(kind);
  hasher->update(bytes);
  return hex(hasher->finish());
}

Result<std::string> hash_file_hex(HashKind kind, const std::string& path) {
  // O_NONBLOCK: opening a named pipe that nobody writes to would wait for ever.
  const int fd = ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  if (fd < 0) {
    if (errno == ENOENT) return fail(ErrorCode::kNotFound, "[hash] {} does not exist; check the path", path);
    return fail(ErrorCode::kIo, "[hash] cannot open {}: {}", path, std::strerror(errno));
  }
  struct stat info{};
  if (::fstat(fd, &info) == 0 && !S_ISREG(info.st_mode) && !S_ISDIR(info.st_mode)) {
    ::close(fd);
    return fail(ErrorCode::kBadInput, "[hash] a regular file was wanted, {} is a device or pipe", path);
  }
  const std::unique_ptr<Hasher> hasher = make_hasher(kind);
  std::vector<std::byte> buffer(1 << 20);
  for (;;) {
    const ssize_t got = ::read(fd, buffer.data(), buffer.size());
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) {
      const int error = errno;
      ::close(fd);
      return fail(ErrorCode::kIo, "[hash] cannot read {}: {}", path, std::strerror(error));
    }
    if (got == 0) break;
    hasher->update(std::span<const std::byte>(buffer).first(static_cast<size_t>(got)));
  }
  ::close(fd);
  return hex(hasher->finish());
}

}  // namespace doppler
