#include "tokenizer/token_index.h"

#include <bit>
#include <functional>

namespace doppler {
namespace {

uint64_t hash_of(std::string_view text) { return std::hash<std::string_view>{}(text); }
uint32_t tag_of(uint64_t hash) { return static_cast<uint32_t>(hash >> 32); }

}  // namespace

TokenIndex::TokenIndex(const std::vector<std::string>& tokens) : tokens_(&tokens) {
  slots_.assign(std::bit_ceil(tokens.size() * 2 + 1), Slot{-1, 0});
  const size_t mask = slots_.size() - 1;
  for (size_t id = 0; id < tokens.size(); ++id) {
    if (tokens[id].empty()) continue;
    if (const int32_t first = find(tokens[id]); first >= 0) {
      if (!duplicate_) duplicate_ = {first, static_cast<int32_t>(id)};
      continue;
    }
    const uint64_t hash = hash_of(tokens[id]);
    size_t slot = hash & mask;
    while (slots_[slot].id >= 0) slot = (slot + 1) & mask;
    slots_[slot] = {static_cast<int32_t>(id), tag_of(hash)};
  }
}

int32_t TokenIndex::find(std::string_view text) const {
  if (text.empty()) return -1;
  const size_t mask = slots_.size() - 1;
  const uint64_t hash = hash_of(text);
  for (size_t slot = hash & mask;; slot = (slot + 1) & mask) {
    const Slot& s = slots_[slot];
    if (s.id < 0 || (s.tag == tag_of(hash) && (*tokens_)[static_cast<size_t>(s.id)] == text)) return s.id;
  }
}

}  // namespace doppler
