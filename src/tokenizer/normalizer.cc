#include "tokenizer/normalizer.h"

#include "tokenizer/spans.h"
#include "tokenizer/unicode.h"

namespace doppler {
namespace {

std::string replace_literal(std::string_view text, const std::string& pattern, const std::string& content) {
  std::string out;
  out.reserve(text.size() + text.size() / 4);
  size_t position = 0;
  for (size_t hit = text.find(pattern); hit != std::string_view::npos; hit = text.find(pattern, position)) {
    out += text.substr(position, hit - position);
    out += content;
    position = hit + pattern.size();
  }
  return out += text.substr(position);
}

std::string replace_regex(std::string_view text, const Regex& regex, const std::string& content) {
  Matcher matcher(regex);
  std::string out;
  for_each_span(text, matcher, [&](std::string_view piece, bool is_match) {
    out += is_match ? std::string_view(content) : piece;
  });
  return out;
}

}  // namespace

Result<Normalizer> Normalizer::make(const std::vector<NormalizerStep>& steps) {
  Normalizer normalizer;
  for (const NormalizerStep& rule : steps) {
    Step step{rule, std::nullopt};
    if (rule.op == NormalizerStep::Op::kReplace && rule.pattern.empty())
      return fail(ErrorCode::kBadFile, "[tokenizer] Replace needs a pattern, got an empty one");
    if (rule.op == NormalizerStep::Op::kReplaceRegex) {
      DOPPLER_TRY(step.regex, Regex::compile(rule.pattern));
    }
    normalizer.steps_.push_back(std::move(step));
  }
  return normalizer;
}

std::string Normalizer::apply(std::string_view text) const {
  using Op = NormalizerStep::Op;
  std::string out(text);
  for (const Step& step : steps_) {
    switch (step.rule.op) {
      case Op::kReplace:
        out = replace_literal(out, step.rule.pattern, step.rule.content);
        break;
      case Op::kReplaceRegex:
        out = replace_regex(out, *step.regex, step.rule.content);
        break;
      case Op::kPrepend:
        if (!out.empty()) out.insert(0, step.rule.content);
        break;
      case Op::kNfc:
        out = unicode::normalize(out, unicode::Form::kNfc);
        break;
      case Op::kNfd:
        out = unicode::normalize(out, unicode::Form::kNfd);
        break;
      case Op::kNfkc:
        out = unicode::normalize(out, unicode::Form::kNfkc);
        break;
      case Op::kNfkd:
        out = unicode::normalize(out, unicode::Form::kNfkd);
        break;
    }
  }
  return out;
}

}  // namespace doppler
