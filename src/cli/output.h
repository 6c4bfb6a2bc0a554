#pragma once
// Results on stdout, messages on stderr, and what a failed write means.
#include <string>
#include <string_view>

#include "doppler/types.h"

namespace doppler::cli {

inline constexpr int kExitOk = 0;
inline constexpr int kExitFailed = 1;
inline constexpr int kExitUsage = 2;
inline constexpr int kExitInterrupted = 130;

/// Writes to stdout without a buffer, so that text appears as it comes and no error is met too late.
class Output {
 public:
  /// False once stdout takes no more: closed by its reader, or failed (full disk). Both are kept for
  /// finish().
  bool write(std::string_view text);
  bool line(std::string_view text);

  /// False after a failed write.
  bool ok() const { return !closed_ && error_ == 0; }

  /// The exit code, given the one the command would have: a reader that has gone (`doppler … | head`) is no
  /// error and ends quietly with 0; a failed write is reported and gives 1.
  int finish(int exit_code);

  bool is_terminal() const;

 private:
  bool closed_ = false;
  int error_ = 0;  // errno of the first failure
};

/// "experts: 90 of 120 asked for were there, 12 of the others prefetched; …"
std::string experts_line(const ExpertStats& stats);

/// Prints `doppler: MESSAGE` as a single line on stderr.
void report(std::string_view message);

/// Reports an error and gives its exit code: 130 if it is an interruption, else 1.
int fail_with(const Error& error);

}  // namespace doppler::cli
