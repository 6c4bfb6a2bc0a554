#include "cli/progress_bar.h"

#include <fmt/core.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdio>

#include "cli/interrupt.h"

namespace doppler::cli {
namespace {

constexpr auto kRedrawInterval = std::chrono::milliseconds(100);

size_t terminal_width() {
  winsize size = {};
  if (ioctl(STDERR_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 0) return size.ws_col;
  return 80;
}

}  // namespace

std::string format_bytes(double bytes) {
  constexpr std::array kUnits = {"B", "KiB", "MiB", "GiB", "TiB"};
  size_t unit = 0;
  while (bytes >= 1024 && unit + 1 < kUnits.size()) {
    bytes /= 1024;
    ++unit;
  }
  return unit == 0 ? fmt::format("{:.0f} B", bytes) : fmt::format("{:.1f} {}", bytes, kUnits[unit]);
}

std::string format_seconds(double seconds) {
  const auto whole = static_cast<uint64_t>(std::ceil(std::clamp(seconds, 0.0, 1e9)));
  if (whole < 60) return fmt::format("{} s", whole);
  if (whole < 3600) return fmt::format("{} min {} s", whole / 60, whole % 60);
  return fmt::format("{} h {} min", whole / 3600, whole % 3600 / 60);
}

std::string progress_line(std::string_view what, uint64_t done, uint64_t total, double per_second,
                          ProgressUnit unit, size_t width) {
  const auto amount = [&](uint64_t n) {
    return unit == ProgressUnit::kBytes ? format_bytes(static_cast<double>(n)) : fmt::format("{}", n);
  };
  std::string tail = amount(done);
  if (total > 0) tail += " of " + amount(total);
  if (per_second > 0) {
    tail += unit == ProgressUnit::kBytes ? ", " + format_bytes(per_second) + "/s"
                                         : fmt::format(", {:.1f}/s", per_second);
    if (total > done) tail += ", " + format_seconds(static_cast<double>(total - done) / per_second) + " left";
  }
  std::string line(what);
  // The bar takes what the words leave, at most 30 columns, and goes first where there is no room.
  const size_t words = what.size() + tail.size() + 5;
  if (total > 0 && width > words + 8) {
    const size_t columns = std::min<size_t>(30, width - words);
    const size_t filled =
        static_cast<size_t>(static_cast<double>(columns) * static_cast<double>(std::min(done, total)) /
                            static_cast<double>(total));
    line += " [" + std::string(filled, '#') + std::string(columns - filled, ' ') + "]";
  }
  line += " " + tail;
  if (width > 0 && line.size() >= width) line.resize(width - 1);  // the last column would wrap
  return line;
}

ProgressBar::ProgressBar(ProgressUnit unit) : unit_(unit), terminal_(::isatty(STDERR_FILENO) == 1) {}

Progress ProgressBar::callback() {
  return [this](std::string_view what, uint64_t done, uint64_t total) {
    if (terminal_) update(what, done, total);
    return !interrupted();
  };
}

void ProgressBar::clear() {
  if (!drawn_) return;
  std::fputs("\r\x1b[K", stderr);
  drawn_ = false;
}

void ProgressBar::update(std::string_view what, uint64_t done, uint64_t total) {
  const auto now = Clock::now();
  if (what_ != what) {
    what_ = what;
    start_ = now;
    last_draw_ = now;  // short work never draws
    first_done_ = done;
    return;
  }
  if (done >= total && total > 0) {
    clear();
    return;
  }
  if (now - last_draw_ < kRedrawInterval) return;
  last_draw_ = now;
  const double seconds = std::chrono::duration<double>(now - start_).count();
  const double rate =
      done > first_done_ && seconds > 0 ? static_cast<double>(done - first_done_) / seconds : 0;
  std::fprintf(stderr, "\r\x1b[K%s", progress_line(what, done, total, rate, unit_, terminal_width()).c_str());
  drawn_ = true;
}

}  // namespace doppler::cli
