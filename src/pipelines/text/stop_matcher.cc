#include "pipelines/text/stop_matcher.h"

#include <algorithm>
#include <utility>

namespace doppler {

std::string StopMatcher::push(std::string_view text) {
  if (stopped_) return {};
  held_ += text;

  size_t begin = std::string::npos, end = std::string::npos;
  for (const std::string& stop : stops_) {
    const size_t at = held_.find(stop);
    if (at == std::string::npos) continue;
    const size_t after = at + stop.size();
    if (after < end || (after == end && at < begin)) {
      begin = at;
      end = after;
    }
  }
  if (begin != std::string::npos) {
    stopped_ = true;
    held_.resize(begin);
    return std::exchange(held_, {});
  }

  size_t keep = 0;
  for (const std::string& stop : stops_) {
    const std::string_view whole = stop;
    for (size_t n = std::min(whole.size() - 1, held_.size()); n > keep; --n) {
      if (std::string_view(held_).ends_with(whole.substr(0, n))) {
        keep = n;
        break;
      }
    }
  }
  std::string out = held_.substr(0, held_.size() - keep);
  held_.erase(0, out.size());
  return out;
}

std::string StopMatcher::finish() { return stopped_ ? std::string() : std::exchange(held_, {}); }

}  // namespace doppler
