#include "cli/output.h"

#include <fmt/core.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

namespace doppler::cli {

bool Output::write(std::string_view text) {
  while (ok() && !text.empty()) {
    const ssize_t count = ::write(STDOUT_FILENO, text.data(), text.size());
    if (count >= 0) {
      text.remove_prefix(static_cast<size_t>(count));
    } else if (errno == EPIPE) {
      closed_ = true;
    } else if (errno != EINTR) {
      error_ = errno;
    }
  }
  return ok();
}

bool Output::line(std::string_view text) {
  std::string whole(text);
  whole += '\n';
  return write(whole);
}

int Output::finish(int exit_code) {
  if (error_ != 0) {
    report(fmt::format("[stdout] the result could not be written: {}", std::strerror(error_)));
    return kExitFailed;
  }
  return closed_ ? kExitOk : exit_code;
}

bool Output::is_terminal() const { return ::isatty(STDOUT_FILENO) == 1; }

std::string experts_line(const ExpertStats& stats) {
  const uint64_t asked = stats.hits + stats.misses;
  return fmt::format(
      "experts: {} of {} asked for were there ({:.1f} %), {} of the others prefetched; {:.1f} MiB loaded; {} "
      "of "
      "{} fit into {:.1f} MiB",
      stats.hits, asked,
      asked == 0 ? 0.0 : 100.0 * static_cast<double>(stats.hits) / static_cast<double>(asked),
      stats.prefetched, static_cast<double>(stats.bytes_loaded) / (1 << 20), stats.slots, stats.slots_wanted,
      static_cast<double>(stats.slot_bytes) / (1 << 20));
}

void report(std::string_view message) {
  std::string line = "doppler: ";
  for (const char c : message) line += c == '\n' || c == '\r' ? ' ' : c;
  line += '\n';
  std::string_view rest = line;
  while (!rest.empty()) {
    const ssize_t count = ::write(STDERR_FILENO, rest.data(), rest.size());
    if (count < 0 && errno == EINTR) continue;
    if (count <= 0) return;
    rest.remove_prefix(static_cast<size_t>(count));
  }
}

int fail_with(const Error& error) {
  report(error.message);
  return error.code == ErrorCode::kCancelled ? kExitInterrupted : kExitFailed;
}

}  // namespace doppler::cli
