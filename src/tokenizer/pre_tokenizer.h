#pragma once
// Cuts text into the pieces that the model works on.
#include <functional>
#include <string_view>
#include <vector>

#include "tokenizer/regex.h"
#include "tokenizer/vocab.h"

namespace doppler {

class PreTokenizer {
 public:
  using Sink = std::function<void(std::string_view)>;

  /// Errors: a pattern that does not compile; kByteLevel anywhere but last (kUnsupported).
  static Result<PreTokenizer> make(const std::vector<PreTokenizerStep>& steps);

  /// Hands every piece of `text` to `sink`, in order. A piece is valid only during the call: it may lie in
  /// working memory. `at_start` says that the text begins where the user's text begins.
  void run(std::string_view text, bool at_start, const Sink& sink) const;

 private:
  struct Step {
    PreTokenizerStep rule;
    std::optional<Regex> regex;  // kSplitRegex whose pattern has no splitter of its own
    bool gpt2 = false;           // the GPT-2 pattern
  };
  class Run;
  std::vector<Step> steps_;
};

/// GPT-2's pattern, as tokenizer.json files spell it.
extern const std::string_view kGpt2Pattern;

/// The pieces of GPT-2's pattern without a regular expression engine.
void gpt2_split(std::string_view text, const PreTokenizer::Sink& sink);

}  // namespace doppler
