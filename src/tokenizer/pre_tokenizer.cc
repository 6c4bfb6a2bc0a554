#include "tokenizer/pre_tokenizer.h"

#include "tokenizer/spans.h"
#include "tokenizer/unicode.h"
#include "tokenizer/utf8.h"

namespace doppler {

using Op = PreTokenizerStep::Op;

Result<PreTokenizer> PreTokenizer::make(const std::vector<PreTokenizerStep>& steps) {
  PreTokenizer result;
  for (size_t i = 0; i < steps.size(); ++i) {
    const PreTokenizerStep& rule = steps[i];
    Step step{rule, std::nullopt, false};
    if ((rule.op == Op::kSplitLiteral || rule.op == Op::kMetaspace) && rule.pattern.empty())
      return fail(ErrorCode::kBadFile, "[tokenizer] a split needs a pattern, got an empty one");
    if (rule.op == Op::kByteLevel && i + 1 != steps.size())
      return fail(ErrorCode::kUnsupported,
                  "[tokenizer] ByteLevel must be the last pre-tokenizer, it is {} of {}", i + 1,
                  steps.size());
    if (rule.op == Op::kSplitRegex) {
      step.gpt2 = rule.pattern == kGpt2Pattern && rule.behavior == SplitBehavior::kIsolated && !rule.invert;
      if (!step.gpt2) {
        DOPPLER_TRY(step.regex, Regex::compile(rule.pattern));
      }
    }
    result.steps_.push_back(std::move(step));
  }
  return result;
}

// One pass over a text: the steps' matchers, and the walk from step to step.
class PreTokenizer::Run {
 public:
  Run(const std::vector<Step>& steps, const Sink& sink) : steps_(steps), sink_(sink) {
    for (const Step& step : steps)
      matchers_.push_back(step.regex ? std::optional<Matcher>(Matcher(*step.regex)) : std::nullopt);
  }

  void apply(size_t index, std::string_view piece, bool at_start) {
    if (index == steps_.size()) {
      if (!piece.empty()) sink_(piece);
      return;
    }
    const Step& step = steps_[index];
    const Sink next = [&, index](std::string_view part) {
      apply(index + 1, part, at_start);
      at_start = false;
    };
    switch (step.rule.op) {
      case Op::kSplitLiteral:
        split(step.rule, next, [&](auto&& emit) { for_each_literal_span(piece, step.rule.pattern, emit); });
        break;
      case Op::kSplitRegex:
        if (step.gpt2) {
          gpt2_split(piece, next);
        } else {
          split(step.rule, next, [&](auto&& emit) { for_each_span(piece, *matchers_[index], emit); });
        }
        break;
      case Op::kDigits:
        digits(step.rule, piece, next);
        break;
      case Op::kByteLevel:
        byte_level(step.rule, piece, next);
        break;
      case Op::kMetaspace:
        metaspace(step.rule, piece, at_start, next);
        break;
      case Op::kWords:
        words(piece, next);
        break;
      case Op::kSpaces:
        by_class(SplitBehavior::kRemoved, piece, unicode::is_space, next);
        break;
      case Op::kPunctuation:
        by_class(step.rule.behavior, piece, unicode::is_punctuation, next);
        break;
    }
  }

 private:
  template <class Spans>
  static void split(const PreTokenizerStep& rule, const Sink& next, Spans&& spans) {
    SpanJoiner<const Sink> joiner(rule.behavior, next);
    spans([&](std::string_view part, bool is_match) { joiner.add(part, is_match != rule.invert); });
    joiner.finish();
  }

  static void digits(const PreTokenizerStep& rule, std::string_view piece, const Sink& next) {
    SpanJoiner<const Sink> joiner(SplitBehavior::kContiguous, next);
    for (size_t i = 0; i < piece.size();) {
      const utf8::Unit unit = utf8::next(piece, i);
      const bool number = unicode::classify(unit.code_point) == unicode::Class::kNumber;
      if (number && rule.individual) {
        joiner.finish();
        next(piece.substr(i, unit.length));
      } else {
        joiner.add(piece.substr(i, unit.length), number);
      }
      i += unit.length;
    }
    joiner.finish();
  }

  template <class IsMatch>
  static void by_class(SplitBehavior behavior, std::string_view piece, IsMatch&& is_match, const Sink& next) {
    SpanJoiner<const Sink> joiner(behavior, next);
    size_t start = 0;  // of the characters that do not match
    for (size_t i = 0; i < piece.size();) {
      const utf8::Unit unit = utf8::next(piece, i);
      if (is_match(unit.code_point)) {
        if (i > start) joiner.add(piece.substr(start, i - start), false);
        joiner.add(piece.substr(i, unit.length), true);
        start = i + unit.length;
      }
      i += unit.length;
    }
    if (start < piece.size()) joiner.add(piece.substr(start), false);
    joiner.finish();
  }

  static void words(std::string_view piece, const Sink& next) {
    enum class Kind : uint8_t { kSpace, kWord, kOther };
    size_t start = 0;
    Kind kind = Kind::kSpace;  // of the run that starts there
    for (size_t i = 0; i < piece.size();) {
      const utf8::Unit unit = utf8::next(piece, i);
      const Kind own = unicode::is_space(unit.code_point)  ? Kind::kSpace
                       : unicode::is_word(unit.code_point) ? Kind::kWord
                                                           : Kind::kOther;
      if (own != kind) {
        if (kind != Kind::kSpace) next(piece.substr(start, i - start));
        start = i;
        kind = own;
      }
      i += unit.length;
    }
    if (kind != Kind::kSpace) next(piece.substr(start));
  }

  static void byte_level(const PreTokenizerStep& rule, std::string_view piece, const Sink& next) {
    std::string prefixed;
    if (rule.add_prefix_space && !piece.empty() && piece[0] != ' ') {
      prefixed = " ";
      prefixed += piece;
      piece = prefixed;
    }
    if (rule.use_regex) {
      gpt2_split(piece, next);
    } else {
      next(piece);
    }
  }

  static void metaspace(const PreTokenizerStep& rule, std::string_view piece, bool at_start,
                        const Sink& next) {
    using Prepend = PreTokenizerStep::Prepend;
    const std::string& mark = rule.pattern;
    std::string marked;
    const bool wanted = rule.prepend == Prepend::kAlways || (rule.prepend == Prepend::kFirst && at_start);
    if (wanted && !piece.empty() && piece[0] != ' ' && !piece.starts_with(mark)) marked = mark;
    for (const char c : piece) {
      if (c == ' ') {
        marked += mark;
      } else {
        marked += c;
      }
    }
    if (!rule.split) return next(marked);
    SpanJoiner<const Sink> joiner(SplitBehavior::kMergedWithNext, next);
    for_each_literal_span(marked, mark,
                          [&](std::string_view part, bool is_match) { joiner.add(part, is_match); });
    joiner.finish();
  }

  const std::vector<Step>& steps_;
  const Sink& sink_;
  std::vector<std::optional<Matcher>> matchers_;
};

void PreTokenizer::run(std::string_view text, bool at_start, const Sink& sink) const {
  if (steps_.empty()) {
    if (!text.empty()) sink(text);
    return;
  }
  Run(steps_, sink).apply(0, text, at_start);
}

}  // namespace doppler
