#pragma once
// Runs a vocabulary's normalizer steps over a stretch of text.
#include <string>
#include <string_view>
#include <vector>

#include "tokenizer/added_tokens.h"
#include "tokenizer/charsmap.h"
#include "tokenizer/regex.h"
#include "tokenizer/vocab.h"

namespace doppler {

class Normalizer {
 public:
  /// Errors (kBadFile): an empty pattern, one that does not compile, a damaged character map.
  static Result<Normalizer> make(const VocabData& vocab);
  bool empty() const { return steps_.empty(); }

  /// `text` after every step. Ill-formed bytes pass through.
  std::string apply(std::string_view text) const;

  /// What a token that is matched after the normalizer looks like in its output.
  std::string token_text(const std::string& text) const { return keeps_tokens_ ? text : apply(text); }

 private:
  struct Step {
    NormalizerStep rule;
    std::optional<Regex> regex;   // kReplaceRegex
    std::optional<CharsMap> map;  // kPrecompiled, kSentencePiece
  };
  std::string sentencepiece(std::string_view text, const Step& step) const;

  std::vector<Step> steps_;
  bool keeps_tokens_ = false;  // kSentencePiece leaves user-defined tokens as they are
  AddedTokenMatcher kept_tokens_{{}};
};

}  // namespace doppler
