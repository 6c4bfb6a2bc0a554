#include "tokenizer/word_piece.h"

#include <algorithm>

#include "tokenizer/utf8.h"

namespace doppler {

WordPiece::WordPiece(const VocabData& vocab, const TokenIndex& index) : vocab_(&vocab), index_(&index) {
  for (const std::string& token : vocab.tokens) longest_ = std::max(longest_, token.size());
}

void WordPiece::encode(std::string_view word, std::vector<int32_t>& ids) const {
  const size_t before = ids.size();
  size_t characters = 0;
  for (size_t i = 0; i < word.size() && characters <= vocab_->max_word_chars; ++characters)
    i += utf8::next(word, i).length;
  if (characters <= vocab_->max_word_chars && split(word, ids)) return;
  ids.resize(before);
  if (vocab_->unk) ids.push_back(*vocab_->unk);
}

bool WordPiece::split(std::string_view word, std::vector<int32_t>& ids) const {
  std::string candidate;
  for (size_t start = 0; start < word.size();) {
    candidate = start > 0 ? vocab_->subword_prefix : std::string();
    const size_t prefix = candidate.size();
    candidate += word.substr(start, longest_);
    // A cut inside a character finds no token: texts of tokens are whole characters.
    int32_t id = -1;
    while (candidate.size() > prefix) {
      id = index_->find(candidate);
      // Text itself never turns into control or unknown tokens.
      if (id >= 0 && vocab_->types[static_cast<size_t>(id)] != TokenType::kControl &&
          vocab_->types[static_cast<size_t>(id)] != TokenType::kUnknown)
        break;
      id = -1;
      candidate.resize(candidate.size() - utf8::previous(candidate, candidate.size()).length);
    }
    if (id < 0) return false;
    ids.push_back(id);
    start += candidate.size() - prefix;
  }
  return true;
}

}  // namespace doppler
