#include <algorithm>

#include "tokenizer/token_index.h"
#include "tokenizer/utf8.h"
#include "tokenizer/vocab.h"

namespace doppler {

std::vector<MergePair> merges_from_scores(const VocabData& vocab, std::vector<uint32_t>* ranks) {
  const TokenIndex index(vocab.tokens);
  const auto normal = [&](int32_t id) {
    return id >= 0 && vocab.types[static_cast<size_t>(id)] == TokenType::kNormal;
  };
  std::vector<int32_t> by_score;
  for (size_t id = 0; id < vocab.tokens.size(); ++id)
    if (normal(static_cast<int32_t>(id))) by_score.push_back(static_cast<int32_t>(id));
  const auto score = [&](int32_t id) { return vocab.scores[static_cast<size_t>(id)]; };
  std::sort(by_score.begin(), by_score.end(),
            [&](int32_t a, int32_t b) { return score(a) != score(b) ? score(a) > score(b) : a < b; });

  std::vector<MergePair> merges;
  uint32_t rank = 0;
  for (size_t i = 0; i < by_score.size(); ++i) {
    if (i > 0 && score(by_score[i]) != score(by_score[i - 1])) ++rank;
    const std::string_view text = vocab.tokens[static_cast<size_t>(by_score[i])];
    // Splits from the longest left part to the shortest: where two of them overlap in a text (a|aa|a), the
    // list then prefers the one that the leftmost-first rule of scores nearly always prefers.
    for (size_t cut = text.size(); cut > 0;) {
      cut -= utf8::previous(text, cut).length;
      if (cut == 0) break;
      const int32_t left = index.find(text.substr(0, cut));
      if (!normal(left)) continue;
      const int32_t right = index.find(text.substr(cut));
      if (!normal(right)) continue;
      merges.push_back({left, right});
      if (ranks != nullptr) ranks->push_back(rank);
    }
  }
  return merges;
}

}  // namespace doppler
