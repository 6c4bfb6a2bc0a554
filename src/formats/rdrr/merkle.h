#pragma once
// Root of a tree of SHA-256 digests over fixed-size blocks of a tensor's bytes: leaf = digest of a block,
// parent = digest of its two children's 32 bytes each, an odd last node is paired with itself.
#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "base/hash.h"

namespace doppler::rdrr {

inline constexpr uint64_t kMerkleBlockBytes = 1u << 20;

class MerkleTree {
 public:
  explicit MerkleTree(uint64_t block_bytes) : block_bytes_(block_bytes) {}
  void update(std::span<const std::byte> bytes);
  std::string root();  // "sha256:" + hex; ends the tree

 private:
  using Digest = std::array<std::byte, 32>;
  uint64_t block_bytes_;
  uint64_t in_block_ = 0;
  std::unique_ptr<Hasher> block_;
  std::vector<Digest> leaves_;
};

}  // namespace doppler::rdrr
