#pragma once
// Text -> token id, over token texts that somebody else owns.
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace doppler {

/// Open addressing, 8 bytes a slot. Keeps a pointer to `tokens`, which must outlive it and stay where it is.
class TokenIndex {
 public:
  explicit TokenIndex(const std::vector<std::string>& tokens);

  /// The id of `text`, or -1. Of two tokens with the same text the first is found; empty texts are not.
  int32_t find(std::string_view text) const;

  /// Two ids with the same text, if there are any.
  std::optional<std::pair<int32_t, int32_t>> duplicate() const { return duplicate_; }

 private:
  struct Slot {
    int32_t id;  // -1 is free
    uint32_t
        tag;  // high half of the hash: most texts that are not here are told apart without touching a token
  };
  const std::vector<std::string>* tokens_;
  std::vector<Slot> slots_;  // the size is a power of two
  std::optional<std::pair<int32_t, int32_t>> duplicate_;
};

}  // namespace doppler
