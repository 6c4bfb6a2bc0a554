#pragma once
// SentencePiece's compiled character map: which byte sequences a normalizer replaces, and by what.
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace doppler {

/// A double-array trie (as Darts-clone lays it out) from sequences to replacement texts.
class CharsMap {
 public:
  struct Match {
    size_t length;            // bytes of the text that are replaced
    std::string_view target;  // by this
  };

  /// `bytes` is the map as files hold it: the trie's size in bytes (32 bits, little endian), the trie, the
  /// replacement texts, each ended by a zero byte. An empty map replaces nothing. Errors: kBadFile for sizes
  /// that disagree with the length.
  static Result<CharsMap> make(std::string_view bytes);

  /// The longest and the shortest sequence that `text` starts with.
  std::optional<Match> longest(std::string_view text) const { return find(text, true); }
  std::optional<Match> shortest(std::string_view text) const { return find(text, false); }

 private:
  std::optional<Match> find(std::string_view text, bool longest) const;

  std::vector<uint32_t> units_;
  std::string targets_;
};

}  // namespace doppler
