#include "tokenizer/token_index.h"

#include <bit>
#include <functional>

namespace doppler {

TokenIndex::TokenIndex(const std::vector<std::string>& tokens) : tokens_(&tokens) {
  slots_.assign(std::bit_ceil(tokens.size() * 2 + 1), -1);
  const size_t mask = slots_.size() - 1;
  for (size_t id = 0; id < tokens.size(); ++id) {
    if (tokens[id].empty()) continue;
    size_t slot = std::hash<std::string_view>{}(tokens[id]) & mask;
    while (slots_[slot] >= 0 && tokens[static_cast<size_t>(slots_[slot])] != tokens[id])
      slot = (slot + 1) & mask;
    if (slots_[slot] < 0) {
      slots_[slot] = static_cast<int32_t>(id);
    } else if (!duplicate_) {
      duplicate_ = {slots_[slot], static_cast<int32_t>(id)};
    }
  }
}

int32_t TokenIndex::find(std::string_view text) const {
  if (text.empty()) return -1;
  const size_t mask = slots_.size() - 1;
  for (size_t slot = std::hash<std::string_view>{}(text)&mask;; slot = (slot + 1) & mask) {
    const int32_t id = slots_[slot];
    if (id < 0 || (*tokens_)[static_cast<size_t>(id)] == text) return id;
  }
}

}  // namespace doppler
