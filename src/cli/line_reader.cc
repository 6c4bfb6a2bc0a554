#include "cli/line_reader.h"

#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstring>

#include "cli/interrupt.h"

namespace doppler::cli {
namespace {

constexpr size_t kMaxLineBytes = 64u << 20;

/// Appends what stdin has; false at its end.
Result<bool> read_some(std::string& into) {
  std::array<char, 65536> block;
  for (;;) {
    const ssize_t count = ::read(STDIN_FILENO, block.data(), block.size());
    if (count > 0) {
      into.append(block.data(), static_cast<size_t>(count));
      return true;
    }
    if (count == 0) return false;
    if (errno != EINTR) return fail(ErrorCode::kIo, "[stdin] could not be read: {}", std::strerror(errno));
    if (interrupted()) return fail(ErrorCode::kCancelled, "[stdin] interrupted");
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
    DOPPLER_TRY(const bool more, read_some(buffer_));
    if (!more) ended_ = true;
  }
}

Result<std::string> read_stdin(size_t limit_bytes) {
  std::string text;
  for (;;) {
    DOPPLER_TRY(const bool more, read_some(text));
    if (text.size() > limit_bytes)
      return fail(ErrorCode::kBadInput, "[stdin] at most {} bytes wanted, got more", limit_bytes);
    if (!more) return text;
  }
}

}  // namespace doppler::cli
