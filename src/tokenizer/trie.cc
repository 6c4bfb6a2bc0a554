#include "tokenizer/trie.h"

#include <bit>

namespace doppler {
namespace {

uint64_t edge_key(uint32_t node, unsigned char byte) { return (uint64_t{node} << 8 | byte) + 1; }

}  // namespace

Trie::Trie(size_t bytes) : edges_(std::bit_ceil(bytes * 2 + 1), Edge{0, 0}) {}

size_t Trie::slot_of(uint64_t key) const {
  const size_t mask = edges_.size() - 1;
  const uint64_t mixed = key * 0x9e3779b97f4a7c15u;
  size_t slot = static_cast<size_t>(mixed ^ mixed >> 32) & mask;
  while (edges_[slot].key != 0 && edges_[slot].key != key) slot = (slot + 1) & mask;
  return slot;
}

void Trie::insert(std::string_view key, int32_t id) {
  uint32_t node = kRoot;
  for (const char c : key) {
    const uint64_t edge = edge_key(node, static_cast<unsigned char>(c));
    Edge& slot = edges_[slot_of(edge)];
    if (slot.key == 0) {
      slot = {edge, static_cast<uint32_t>(values_.size())};
      values_.push_back(-1);
    }
    node = slot.child;
  }
  values_[node] = id;
}

uint32_t Trie::child(uint32_t node, unsigned char byte) const {
  const Edge& slot = edges_[slot_of(edge_key(node, byte))];
  return slot.key == 0 ? kRoot : slot.child;
}

}  // namespace doppler
