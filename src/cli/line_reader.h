#pragma once
// Lines of stdin, one at a time.
#include <string>

#include "base/result.h"

namespace doppler::cli {

class LineReader {
 public:
  /// The next line without its end in `line`; false at the end of input. A last line needs no end. Errors:
  /// kIo; kCancelled after Ctrl-C; kBadInput for a line of more than 64 MiB (its rest is skipped, reading can
  /// go on).
  Result<bool> next(std::string& line);

 private:
  std::string buffer_;
  size_t begin_ = 0;
  bool ended_ = false;
};

/// All of stdin, at most `limit_bytes`.
Result<std::string> read_stdin(size_t limit_bytes);

}  // namespace doppler::cli
