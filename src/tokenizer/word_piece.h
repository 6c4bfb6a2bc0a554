#pragma once
// WordPiece: word by word, the longest token that fits first (BERT).
#include <string>
#include <string_view>
#include <vector>

#include "tokenizer/token_index.h"
#include "tokenizer/vocab.h"

namespace doppler {

class WordPiece {
 public:
  /// `vocab` and `index` must outlive the engine.
  WordPiece(const VocabData& vocab, const TokenIndex& index);

  /// Appends the ids of one word: the unknown token if some part of it has no token or it is too long.
  void encode(std::string_view word, std::vector<int32_t>& ids) const;

 private:
  bool split(std::string_view word, std::vector<int32_t>& ids) const;

  const VocabData* vocab_;
  const TokenIndex* index_;
  size_t longest_ = 0;  // bytes of the longest token
};

}  // namespace doppler
