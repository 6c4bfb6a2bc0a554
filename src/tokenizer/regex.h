#pragma once
// Regular expressions for the split patterns that have no splitter of their own.
#include <memory>
#include <string_view>

#include "base/result.h"

namespace doppler {

/// A compiled pattern with Unicode classes. Immutable; any number of Matchers may use it at once.
class Regex {
 public:
  /// Errors: kBadFile with the offset and the reason if the pattern is malformed.
  static Result<Regex> compile(std::string_view pattern);

  Regex(Regex&&) noexcept;
  Regex& operator=(Regex&&) noexcept;
  ~Regex();

 private:
  friend class Matcher;
  struct Code;
  explicit Regex(std::unique_ptr<Code> code);
  std::unique_ptr<Code> code_;
};

/// Working memory of one thread for matching.
class Matcher {
 public:
  explicit Matcher(const Regex& regex);
  Matcher(Matcher&&) noexcept;
  ~Matcher();

  /// The first match in `text` (well-formed UTF-8) at or after `from`; false if there is none. A match that
  /// runs into the backtracking limit counts as none.
  bool find(std::string_view text, size_t from, size_t& begin, size_t& end);

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace doppler
