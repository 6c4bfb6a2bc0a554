#pragma once
// A line on the terminal's stderr: what is done, how fast, how long it will still take.
#include <chrono>
#include <cstdint>
#include <string>
#include <string_view>

#include "doppler/types.h"

namespace doppler::cli {

enum class ProgressUnit { kBytes, kItems };

/// One bar at a time. Shows nothing where stderr is not a terminal.
class ProgressBar {
 public:
  explicit ProgressBar(ProgressUnit unit = ProgressUnit::kBytes);
  ~ProgressBar() { clear(); }
  ProgressBar(const ProgressBar&) = delete;
  ProgressBar& operator=(const ProgressBar&) = delete;

  /// A callback that draws and that asks to stop after Ctrl-C. Valid as long as this bar.
  Progress callback();

  /// Takes the line away, so that other text can be written.
  void clear();

 private:
  using Clock = std::chrono::steady_clock;
  void update(std::string_view what, uint64_t done, uint64_t total);

  ProgressUnit unit_;
  bool terminal_;
  bool drawn_ = false;
  std::string what_;
  uint64_t first_done_ = 0;  // where this piece of work started: a resumed download is not that fast
  Clock::time_point start_, last_draw_;
};

/// The bar's text at `width` columns: "load [######    ] 45.0 of 98.4 MiB, 12.1 MiB/s, 4 s left".
std::string progress_line(std::string_view what, uint64_t done, uint64_t total, double per_second,
                          ProgressUnit unit, size_t width);

/// "98.4 MiB"
std::string format_bytes(double bytes);
/// "4 s", "3 min 20 s", "2 h 5 min"
std::string format_seconds(double seconds);

}  // namespace doppler::cli
