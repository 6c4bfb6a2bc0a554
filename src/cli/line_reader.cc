#include "cli/line_reader.h"

#include <fcntl.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstring>

#include "cli/interrupt.h"

namespace doppler::cli {
namespace {

constexpr size_t kMaxLineBytes = 64u << 20;

/// Appends what the descriptor has; false at its end. `name` begins messages.
Result<bool> read_some(int fd, std::string_view name, std::string& into) {
  std::array<char, 65536> block;
  for (;;) {
    const ssize_t count = ::read(fd, block.data(), block.size());
    if (count > 0) {
      into.append(block.data(), static_cast<size_t>(count));
      return true;
    }
    if (count == 0) return false;
    if (errno != EINTR) return fail(ErrorCode::kIo, "{} could not be read: {}", name, std::strerror(errno));
    if (interrupted()) return fail(ErrorCode::kCancelled, "{}: interrupted", name);
  }
}

tl::unexpected<Error> too_long_error() {
  return fail(ErrorCode::kBadInput, "[stdin] lines of at most {} bytes wanted, got a longer one",
              kMaxLineBytes);
}

}  // namespace

Result<bool> LineReader::next(std::string& line) {
  bool too_long = false;
  size_t searched = begin_;
  for (;;) {
    const size_t end = buffer_.find('\n', searched);
    if (end != std::string::npos) {
      line = too_long ? std::string() : buffer_.substr(begin_, end - begin_);
      begin_ = end + 1;
      if (!too_long) return true;
      return too_long_error();
    }
    if (ended_) {
      line = buffer_.substr(begin_);
      buffer_.clear();
      begin_ = 0;
      if (too_long) return too_long_error();
      return !line.empty();
    }
    buffer_.erase(0, begin_);
    begin_ = 0;
    if (buffer_.size() > kMaxLineBytes) {
      too_long = true;
      buffer_.clear();
    }
    searched = buffer_.size();
    DOPPLER_TRY(const bool more, read_some(STDIN_FILENO, "[stdin] the lines", buffer_));
    if (!more) ended_ = true;
  }
}

Result<std::string> read_text_argument(const std::string& path, size_t limit_bytes) {
  const bool is_stdin = path == "-";
  const std::string name = is_stdin ? "[stdin] the text" : "[file] " + path;
  int fd = STDIN_FILENO;
  // The open of a named pipe waits for its writer, and Ctrl-C ends the wait.
  while (!is_stdin && (fd = ::open(path.c_str(), O_RDONLY | O_CLOEXEC)) < 0) {
    if (errno == ENOENT || errno == ENOTDIR)
      return fail(ErrorCode::kNotFound, "[file] {} does not exist; check the path", path);
    if (errno != EINTR) return fail(ErrorCode::kIo, "[file] cannot open {}: {}", path, std::strerror(errno));
    if (interrupted()) return fail(ErrorCode::kCancelled, "[file] interrupted");
  }
  std::string text;
  Result<bool> more = true;
  while ((more = read_some(fd, name, text)) && *more && text.size() <= limit_bytes) {
  }
  if (!is_stdin) ::close(fd);
  if (!more) return tl::unexpected(more.error());
  if (text.size() > limit_bytes)
    return fail(ErrorCode::kBadInput, "{} has more than the {} bytes wanted at most", name, limit_bytes);
  return text;
}

}  // namespace doppler::cli
