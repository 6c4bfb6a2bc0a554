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

/// All of the text that an option names: a file, a pipe, or stdin for "-"; at most `limit_bytes`. Errors:
/// kNotFound, kIo, kBadInput for a longer one, kCancelled after Ctrl-C.
Result<std::string> read_text_argument(const std::string& path, size_t limit_bytes);

}  // namespace doppler::cli
