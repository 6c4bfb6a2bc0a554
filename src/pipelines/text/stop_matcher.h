#pragma once
// Ends a stream of text at the first stop string, and never lets a part of one out before it is sure.
#include <string>
#include <string_view>
#include <vector>

namespace doppler {

/// Of several stop strings the one that is complete first wins, the longest if two are complete at once: the
/// result does not depend on how the text was cut into tokens.
class StopMatcher {
 public:
  /// None of `stops` is empty.
  explicit StopMatcher(std::vector<std::string> stops) : stops_(std::move(stops)) {}

  /// Takes the next text; returns what can be shown. Once stopped, everything is dropped.
  std::string push(std::string_view text);

  /// The text ends here: what was held back, because it might have become a stop string.
  std::string finish();

  bool stopped() const { return stopped_; }

 private:
  std::vector<std::string> stops_;
  std::string held_;  // the longest tail that is the beginning of a stop string
  bool stopped_ = false;
};

}  // namespace doppler
