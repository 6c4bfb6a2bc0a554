#include "cli/progress_bar.h"

#include <doctest/doctest.h>

using namespace doppler::cli;

TEST_CASE("the bar's line fits its width and shows amount, rate and time left") {
  const std::string line = progress_line("load", 45u << 20, 90u << 20, 9 << 20, ProgressUnit::kBytes, 100);
  CHECK(line.starts_with("load [###"));
  CHECK(line.find("45.0 MiB of 90.0 MiB, 9.0 MiB/s, 5 s left") != std::string::npos);
  for (size_t width = 1; width < 100; ++width) {
    CAPTURE(width);
    CHECK(progress_line("load", 45u << 20, 90u << 20, 9 << 20, ProgressUnit::kBytes, width).size() <= width);
  }
  CHECK(progress_line("windows", 3, 15, 0.5, ProgressUnit::kItems, 100).find("3 of 15, 0.5/s, 24 s left") !=
        std::string::npos);
  CHECK(progress_line("download", 5000, 0, 0, ProgressUnit::kBytes, 80) == "download 4.9 KiB");
}

TEST_CASE("bytes and seconds as people read them") {
  CHECK(format_bytes(0) == "0 B");
  CHECK(format_bytes(1536) == "1.5 KiB");
  CHECK(format_bytes(3.0 * 1024 * 1024 * 1024) == "3.0 GiB");
  CHECK(format_seconds(0.2) == "1 s");
  CHECK(format_seconds(200) == "3 min 20 s");
  CHECK(format_seconds(7500) == "2 h 5 min");
}
