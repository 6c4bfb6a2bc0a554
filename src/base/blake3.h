#pragma once
// BLAKE3 (github.com/BLAKE3-team/BLAKE3-specs), the default hash mode, 256 bits out. Portable.
#include <array>
#include <cstdint>

#include "base/hash.h"

namespace doppler {

class Blake3 final : public Hasher {
 public:
  Blake3();
  void update(std::span<const std::byte> bytes) override;
  std::array<std::byte, 32> finish() override;

 private:
  using ChainingValue = std::array<uint32_t, 8>;

  void absorb_block();                                 // the full buffer, which is not the chunk's last block
  void push_chunk(ChainingValue cv, uint64_t chunks);  // a finished chunk joins the tree

  ChainingValue cv_;                   // of the chunk in progress
  std::array<std::byte, 64> block_{};  // its unfinished block
  uint32_t block_bytes_ = 0;
  uint32_t blocks_done_ = 0;  // of 16
  uint64_t chunk_index_ = 0;
  // Roots of complete subtrees, largest first: one for each set bit of chunk_index_. 2^54 chunks are 2^64
  // bytes.
  std::array<ChainingValue, 54> stack_{};
  uint32_t stack_size_ = 0;
};

}  // namespace doppler
