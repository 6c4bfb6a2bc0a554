#pragma once
// Finds whole tokens (control, user-defined) in text before BPE sees it.
#include <array>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "tokenizer/vocab.h"

namespace doppler {

class AddedTokenMatcher {
 public:
  struct Entry {
    std::string
        text;  // what is looked for: the token's text, normalised if it is matched after the normalizer
    AddedToken token;
  };
  struct Match {
    size_t begin, end;
    int32_t id;
  };

  explicit AddedTokenMatcher(std::vector<Entry> entries);
  bool empty() const { return entries_.empty(); }

  /// The leftmost match at or after `from`, the longest of those that start there.
  std::optional<Match> find(std::string_view text, size_t from) const;

 private:
  const Entry* longest_at(std::string_view text, size_t position) const;

  std::vector<Entry> entries_;      // sorted by text
  std::array<bool, 256> starts_{};  // bytes that some entry starts with
};

}  // namespace doppler
