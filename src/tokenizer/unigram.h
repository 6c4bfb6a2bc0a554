#pragma once
// Unigram: the segmentation of a piece whose scores sum highest (Viterbi).
#include <array>
#include <cstdint>
#include <string_view>
#include <vector>

#include "tokenizer/token_index.h"
#include "tokenizer/trie.h"
#include "tokenizer/vocab.h"

namespace doppler {

class Unigram {
 public:
  /// Working memory, reused from piece to piece: 16 bytes a byte of the piece.
  struct Scratch {
    struct Node {
      double score;
      int32_t id;       // of the token that ends here; kUnknown where no token does
      uint32_t length;  // of that token in bytes, 0 if nothing ends here
    };
    std::vector<Node> nodes;
    std::vector<std::pair<uint32_t, int32_t>> path;  // end, id; last token first
  };

  /// `vocab` and `index` must outlive the engine.
  Unigram(const VocabData& vocab, const TokenIndex& index);

  /// Appends the ids of one piece. Time grows with the piece's length times the longest token's.
  void encode(std::string_view piece, Scratch& scratch, std::vector<int32_t>& ids) const;

 private:
  void encode_stretch(std::string_view stretch, Scratch& scratch, std::vector<int32_t>& ids) const;
  void push_unknown(std::string_view text, std::vector<int32_t>& ids) const;
  bool is_symbol(int32_t id) const;

  const VocabData* vocab_;
  const TokenIndex* index_;
  Trie trie_;
  double unknown_score_;
  std::array<int32_t, 256> byte_ids_{};  // <0xNN> tokens, -1 where there is none
};

}  // namespace doppler
