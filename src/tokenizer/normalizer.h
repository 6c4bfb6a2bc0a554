#pragma once
// Runs a vocabulary's normalizer steps over a stretch of text.
#include <string>
#include <string_view>
#include <vector>

#include "tokenizer/regex.h"
#include "tokenizer/vocab.h"

namespace doppler {

class Normalizer {
 public:
  static Result<Normalizer> make(const std::vector<NormalizerStep>& steps);
  bool empty() const { return steps_.empty(); }

  /// `text` after every step. Ill-formed bytes pass through.
  std::string apply(std::string_view text) const;

 private:
  struct Step {
    NormalizerStep rule;
    std::optional<Regex> regex;  // kReplaceRegex
  };
  std::vector<Step> steps_;
};

}  // namespace doppler
