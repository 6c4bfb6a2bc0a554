#pragma once
// Byte trie over token texts, for models that ask which tokens start at a place.
#include <cstdint>
#include <string_view>
#include <vector>

namespace doppler {

class Trie {
 public:
  static constexpr uint32_t kRoot = 0;

  /// `bytes` is how many bytes all keys have together at most; the edges never need to grow.
  explicit Trie(size_t bytes);

  /// Gives `key` the value `id` (>= 0). A later insertion of the same key stays.
  void insert(std::string_view key, int32_t id);

  /// The node after `byte`, or kRoot if no key goes on like that.
  uint32_t child(uint32_t node, unsigned char byte) const;

  /// The value of the key that ends at `node`, or -1.
  int32_t value(uint32_t node) const { return values_[node]; }

 private:
  struct Edge {
    uint64_t key;  // node and byte, plus one; 0 is free
    uint32_t child;
  };
  size_t slot_of(uint64_t key) const;

  std::vector<Edge> edges_;  // open addressing, the size is a power of two
  std::vector<int32_t> values_{-1};
};

}  // namespace doppler
