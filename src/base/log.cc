#include "base/log.h"

#include <atomic>
#include <cstdio>
#include <string>

namespace doppler {
namespace {
std::atomic<LogLevel> g_level{LogLevel::kWarning};
}

void set_log_level(LogLevel level) { g_level = level; }
LogLevel log_level() { return g_level; }

void log_line(LogLevel level, std::string_view text) {
  static constexpr const char* kNames[] = {"error", "warning", "info", "debug"};
  const std::string line = fmt::format("doppler: {}: {}\n", kNames[static_cast<int>(level)], text);
  std::fwrite(line.data(), 1, line.size(), stderr);
}

}  // namespace doppler
