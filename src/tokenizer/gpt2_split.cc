#include "tokenizer/pre_tokenizer.h"
#include "tokenizer/unicode.h"
#include "tokenizer/utf8.h"

namespace doppler {

const std::string_view kGpt2Pattern =
    R"('s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+)";

namespace {

using unicode::Class;

size_t contraction_length(std::string_view text) {
  if (text.size() < 2) return 0;
  const char a = text[1];
  if (a == 's' || a == 't' || a == 'm' || a == 'd') return 2;
  if (text.size() < 3) return 0;
  const char b = text[2];
  return (a == 'r' && b == 'e') || (a == 'v' && b == 'e') || (a == 'l' && b == 'l') ? 3 : 0;
}

// The end of the run of characters of class `wanted` that starts at `i`; `last` receives the start of its
// last.
size_t run_end(std::string_view text, size_t i, Class wanted, size_t* last = nullptr) {
  while (i < text.size()) {
    const utf8::Unit unit = utf8::next(text, i);
    if (unicode::classify(unit.code_point) != wanted) break;
    if (last != nullptr) *last = i;
    i += unit.length;
  }
  return i;
}

}  // namespace

void gpt2_split(std::string_view text, const PreTokenizer::Sink& sink) {
  size_t i = 0;
  const auto emit = [&](size_t end) {
    sink(text.substr(i, end - i));
    i = end;
  };
  while (i < text.size()) {
    if (text[i] == '\'') {
      if (const size_t length = contraction_length(text.substr(i)); length > 0) {
        emit(i + length);
        continue;
      }
    }
    const size_t body = text[i] == ' ' && i + 1 < text.size() ? i + 1 : i;
    if (const Class kind = unicode::classify(utf8::next(text, body).code_point); kind != Class::kSpace) {
      emit(run_end(text, body, kind));
      continue;
    }
    // White space: the last character of a run stays for the word that follows, unless it is the only one.
    size_t last = i;
    const size_t end = run_end(text, i, Class::kSpace, &last);
    emit(end == text.size() || last == i ? end : last);
  }
}

}  // namespace doppler
