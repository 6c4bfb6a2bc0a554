#pragma once
// One log sink for the process, on stderr. Results never go through it.
#include <fmt/core.h>

#include <string_view>
#include <utility>

namespace doppler {

enum class LogLevel { kError, kWarning, kInfo, kDebug };

void set_log_level(LogLevel level);  // default kWarning; the CLI's -v sets kInfo, -vv kDebug
LogLevel log_level();
void log_line(LogLevel level, std::string_view text);

template <class... Args>
void log(LogLevel level, fmt::format_string<Args...> format, Args&&... args) {
  if (level <= log_level()) log_line(level, fmt::format(format, std::forward<Args>(args)...));
}

}  // namespace doppler
