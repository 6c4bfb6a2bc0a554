#include "base/blake3.h"

#include <algorithm>
#include <bit>
#include <cstring>

namespace doppler {
namespace {

constexpr uint32_t kBlockBytes = 64;
constexpr uint32_t kBlocksPerChunk = 16;  // a chunk is 1,024 bytes
enum Flag : uint32_t { kChunkStart = 1, kChunkEnd = 2, kParent = 4, kRoot = 8 };

// The square-root constants SHA-256 also starts from.
constexpr std::array<uint32_t, 8> kIv{0x6a09e667, 0xbb67ae85, 0x3c6ef372, 0xa54ff53a,
                                      0x510e527f, 0x9b05688c, 0x1f83d9ab, 0x5be0cd19};
// How the message words move from one round to the next.
constexpr std::array<uint8_t, 16> kPermutation{2, 6, 3, 10, 7, 0, 4, 13, 1, 11, 12, 5, 9, 14, 15, 8};

using Words = std::array<uint32_t, 16>;

constexpr std::array<std::array<uint8_t, 16>, 7> make_schedule() {
  std::array<std::array<uint8_t, 16>, 7> rounds{};
  for (uint8_t i = 0; i < 16; ++i) rounds[0][i] = i;
  for (size_t r = 1; r < 7; ++r)
    for (size_t i = 0; i < 16; ++i) rounds[r][i] = rounds[r - 1][kPermutation[i]];
  return rounds;
}
constexpr auto kSchedule = make_schedule();

inline void mix(Words& v, size_t a, size_t b, size_t c, size_t d, uint32_t x, uint32_t y) {
  v[a] += v[b] + x;
  v[d] = std::rotr(v[d] ^ v[a], 16);
  v[c] += v[d];
  v[b] = std::rotr(v[b] ^ v[c], 12);
  v[a] += v[b] + y;
  v[d] = std::rotr(v[d] ^ v[a], 8);
  v[c] += v[d];
  v[b] = std::rotr(v[b] ^ v[c], 7);
}

/// The compression function, cut to the 8 words that become a chaining value or the digest.
std::array<uint32_t, 8> compress(const std::array<uint32_t, 8>& cv, const Words& m, uint64_t counter,
                                 uint32_t length, uint32_t flags) {
  Words v{cv[0],
          cv[1],
          cv[2],
          cv[3],
          cv[4],
          cv[5],
          cv[6],
          cv[7],
          kIv[0],
          kIv[1],
          kIv[2],
          kIv[3],
          static_cast<uint32_t>(counter),
          static_cast<uint32_t>(counter >> 32),
          length,
          flags};
  for (const auto& s : kSchedule) {
    mix(v, 0, 4, 8, 12, m[s[0]], m[s[1]]);  // columns
    mix(v, 1, 5, 9, 13, m[s[2]], m[s[3]]);
    mix(v, 2, 6, 10, 14, m[s[4]], m[s[5]]);
    mix(v, 3, 7, 11, 15, m[s[6]], m[s[7]]);
    mix(v, 0, 5, 10, 15, m[s[8]], m[s[9]]);  // diagonals
    mix(v, 1, 6, 11, 12, m[s[10]], m[s[11]]);
    mix(v, 2, 7, 8, 13, m[s[12]], m[s[13]]);
    mix(v, 3, 4, 9, 14, m[s[14]], m[s[15]]);
  }
  std::array<uint32_t, 8> out;
  for (size_t i = 0; i < 8; ++i) out[i] = v[i] ^ v[i + 8];
  return out;
}

Words load_words(const std::byte* bytes) {
  static_assert(std::endian::native == std::endian::little, "words are read as they lie in memory");
  Words words;
  std::memcpy(words.data(), bytes, sizeof words);
  return words;
}

Words parent_words(const std::array<uint32_t, 8>& left, const std::array<uint32_t, 8>& right) {
  Words words;
  std::copy(left.begin(), left.end(), words.begin());
  std::copy(right.begin(), right.end(), words.begin() + 8);
  return words;
}

}  // namespace

Blake3::Blake3() : cv_(kIv) {}

void Blake3::absorb_block() {
  const uint32_t flags = blocks_done_ == 0 ? kChunkStart : 0u;
  cv_ = compress(cv_, load_words(block_.data()), chunk_index_, kBlockBytes, flags);
  ++blocks_done_;
  block_bytes_ = 0;
}

void Blake3::push_chunk(ChainingValue cv, uint64_t chunks) {
  // Each trailing zero bit of the count is a subtree that this chunk completes.
  for (; (chunks & 1) == 0; chunks >>= 1)
    cv = compress(kIv, parent_words(stack_[--stack_size_], cv), 0, kBlockBytes, kParent);
  stack_[stack_size_++] = cv;
}

void Blake3::update(std::span<const std::byte> bytes) {
  while (!bytes.empty()) {
    // A block is compressed only once more input is known to follow: the last one carries other flags.
    if (block_bytes_ == kBlockBytes) {
      if (blocks_done_ + 1 < kBlocksPerChunk) {
        absorb_block();
      } else {
        push_chunk(compress(cv_, load_words(block_.data()), chunk_index_, kBlockBytes, kChunkEnd),
                   chunk_index_ + 1);
        cv_ = kIv;
        block_bytes_ = blocks_done_ = 0;
        ++chunk_index_;
      }
    }
    const size_t take = std::min<size_t>(kBlockBytes - block_bytes_, bytes.size());
    std::memcpy(block_.data() + block_bytes_, bytes.data(), take);
    block_bytes_ += static_cast<uint32_t>(take);
    bytes = bytes.subspan(take);
  }
}

std::array<std::byte, 32> Blake3::finish() {
  std::fill(block_.begin() + block_bytes_, block_.end(), std::byte{0});
  // The node in hand stays uncompressed until it is known whether it is the root.
  ChainingValue input = cv_;
  Words words = load_words(block_.data());
  uint64_t counter = chunk_index_;
  uint32_t length = block_bytes_;
  uint32_t flags = (blocks_done_ == 0 ? kChunkStart : 0u) | kChunkEnd;
  while (stack_size_ > 0) {
    words = parent_words(stack_[--stack_size_], compress(input, words, counter, length, flags));
    input = kIv;
    counter = 0;
    length = kBlockBytes;
    flags = kParent;
  }
  const ChainingValue digest = compress(input, words, 0, length, flags | kRoot);
  std::array<std::byte, 32> out;
  std::memcpy(out.data(), digest.data(), sizeof out);
  return out;
}

}  // namespace doppler
