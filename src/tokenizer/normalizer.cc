#include "tokenizer/normalizer.h"

#include "tokenizer/spans.h"
#include "tokenizer/unicode.h"

namespace doppler {
namespace {

using Op = NormalizerStep::Op;

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

// Calls each(code point, bytes, out) for every character and ill-formed byte.
template <class Each>
std::string by_character(std::string_view text, Each&& each) {
  std::string out;
  out.reserve(text.size() + text.size() / 4);
  for (size_t i = 0; i < text.size();) {
    const utf8::Unit unit = utf8::next(text, i);
    each(unit.code_point, text.substr(i, unit.length), out);
    i += unit.length;
  }
  return out;
}

std::string lowercase(std::string_view text) {
  return by_character(text, [](uint32_t c, std::string_view bytes, std::string& out) {
    if (c == utf8::kIllFormed) {
      out += bytes;
    } else {
      unicode::append_lower(out, c);
    }
  });
}

template <class Drops>
std::string without(std::string_view text, Drops&& drops) {
  return by_character(text, [&](uint32_t c, std::string_view bytes, std::string& out) {
    if (!drops(c)) out += bytes;
  });
}

std::string strip(std::string_view text, bool left, bool right) {
  while (left && !text.empty()) {
    const utf8::Unit unit = utf8::next(text, 0);
    if (!unicode::is_space(unit.code_point)) break;
    text.remove_prefix(unit.length);
  }
  while (right && !text.empty()) {
    const utf8::Unit unit = utf8::previous(text, text.size());
    if (!unicode::is_space(unit.code_point)) break;
    text.remove_suffix(unit.length);
  }
  return std::string(text);
}

// The rules of neural machine translation that SentencePiece's own maps start with.
std::string nmt(std::string_view text) {
  return by_character(text, [](uint32_t c, std::string_view bytes, std::string& out) {
    if ((c >= 1 && c <= 8) || c == 0xb || (c >= 0xe && c <= 0x1f) || c == 0x7f || c == 0x8f || c == 0x9f)
      return;
    const bool space = c == 9 || c == 0xa || c == 0xc || c == 0xd || c == 0x1680 ||
                       (c >= 0x200b && c <= 0x200f) || c == 0x2028 || c == 0x2029 || c == 0x2581 ||
                       c == 0xfeff || c == 0xfffd;
    out += space ? std::string_view(" ") : bytes;
  });
}

std::string bert(std::string_view text, const NormalizerStep& rule) {
  std::string out(text);
  if (rule.clean_text) {
    out = by_character(out, [](uint32_t c, std::string_view bytes, std::string& to) {
      if (c == '\t' || c == '\n' || c == '\r' || unicode::is_space(c)) {
        // U+0085 and its kind are control characters before they are white space.
        if (c == '\t' || c == '\n' || c == '\r' || !unicode::is_other(c)) to += ' ';
        return;
      }
      // An ill-formed byte counts as U+FFFD, which goes too.
      if (c != 0 && c != 0xfffd && c != utf8::kIllFormed && !unicode::is_other(c)) to += bytes;
    });
  }
  if (rule.chinese_chars) {
    out = by_character(out, [](uint32_t c, std::string_view bytes, std::string& to) {
      const bool apart = unicode::is_chinese(c);
      if (apart) to += ' ';
      to += bytes;
      if (apart) to += ' ';
    });
  }
  if (rule.strip_accents)
    out = without(unicode::normalize(out, unicode::Form::kNfd), unicode::is_nonspacing_mark);
  return rule.lowercase ? lowercase(out) : out;
}

// A tokenizer.json's Precompiled replaces a whole short grapheme by the target of the first sequence it
// starts with, and goes character by character where there is none.
std::string precompiled(std::string_view text, const CharsMap& map) {
  constexpr size_t kLongGrapheme = 6;  // bytes; from here on only characters are looked up
  std::string out;
  out.reserve(text.size() + text.size() / 4);
  for (size_t i = 0; i < text.size();) {
    const size_t end = unicode::grapheme_end(text, i);
    const std::string_view grapheme = text.substr(i, end - i);
    i = end;
    if (grapheme.size() < kLongGrapheme) {
      if (const auto match = map.shortest(grapheme)) {
        out += match->target;
        continue;
      }
    }
    out += by_character(grapheme, [&](uint32_t, std::string_view bytes, std::string& to) {
      const auto match = map.shortest(bytes);
      to += match ? match->target : bytes;
    });
  }
  return out;
}

}  // namespace

Result<Normalizer> Normalizer::make(const VocabData& vocab) {
  Normalizer normalizer;
  for (const NormalizerStep& rule : vocab.normalizer) {
    Step step{rule, std::nullopt, std::nullopt};
    if (rule.op == Op::kReplace && rule.pattern.empty())
      return fail(ErrorCode::kBadFile, "[tokenizer] Replace needs a pattern, got an empty one");
    if (rule.op == Op::kReplaceRegex) {
      DOPPLER_TRY(step.regex, Regex::compile(rule.pattern));
    }
    if (rule.op == Op::kPrecompiled || rule.op == Op::kSentencePiece) {
      DOPPLER_TRY(step.map, CharsMap::make(rule.pattern));
    }
    if (rule.op == Op::kSentencePiece && !normalizer.keeps_tokens_) {
      normalizer.keeps_tokens_ = true;
      std::vector<AddedTokenMatcher::Entry> entries;
      for (const AddedToken& token : vocab.added) {
        const auto id = static_cast<size_t>(token.id);
        if (vocab.types[id] == TokenType::kUserDefined)
          entries.push_back({vocab.tokens[id], {.id = token.id}});
      }
      normalizer.kept_tokens_ = AddedTokenMatcher(std::move(entries));
    }
    normalizer.steps_.push_back(std::move(step));
  }
  return normalizer;
}

std::string Normalizer::sentencepiece(std::string_view text, const Step& step) const {
  const NormalizerStep& rule = step.rule;
  const std::string_view mark = rule.escape_spaces ? "\xe2\x96\x81" : " ";
  std::string out;
  out.reserve(text.size() + text.size() / 2);
  bool after_space = rule.remove_extra_spaces;
  bool started = false;
  auto kept = kept_tokens_.find(text, 0);
  for (size_t i = 0; i < text.size();) {
    std::string_view source, target;
    while (kept && kept->begin < i) kept = kept_tokens_.find(text, i);
    if (kept && kept->begin == i) {
      source = target = text.substr(i, kept->end - i);
    } else if (const auto match = step.map->longest(text.substr(i))) {
      source = text.substr(i, match->length);
      target = match->target;
    } else {
      source = target = text.substr(i, utf8::next(text, i).length);
    }
    i += source.size();
    if (!started) {
      if (rule.remove_extra_spaces && target == " ") continue;
      started = true;
      if (rule.dummy_prefix && !rule.space_as_suffix) out += mark;
    }
    while (after_space && target.starts_with(' ')) target.remove_prefix(1);
    for (const char c : target) {
      if (c == ' ') {
        out += mark;
      } else {
        out += c;
      }
    }
    if (!target.empty()) after_space = rule.remove_extra_spaces && target.back() == ' ';
  }
  if (!started) return out;
  while (rule.remove_extra_spaces && out.ends_with(mark)) out.resize(out.size() - mark.size());
  if (rule.dummy_prefix && rule.space_as_suffix) out += mark;
  return out;
}

std::string Normalizer::apply(std::string_view text) const {
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
      case Op::kLowercase:
        out = lowercase(out);
        break;
      case Op::kStrip:
        out = strip(out, step.rule.left, step.rule.right);
        break;
      case Op::kStripAccents:
        out = without(out, unicode::is_mark);
        break;
      case Op::kNmt:
        out = nmt(out);
        break;
      case Op::kBert:
        out = bert(out, step.rule);
        break;
      case Op::kPrecompiled:
        out = precompiled(out, *step.map);
        break;
      case Op::kSentencePiece:
        out = sentencepiece(out, step);
        break;
    }
  }
  return out;
}

}  // namespace doppler
