#include "tokenizer/unicode.h"

#include <utf8proc.h>

#include <array>
#include <cstdlib>

#include "tokenizer/unicode_8.h"
#include "tokenizer/utf8.h"

namespace doppler::unicode {
namespace {

utf8proc_category_t category(uint32_t c) {
  return c > 0x10ffff ? UTF8PROC_CATEGORY_CN : utf8proc_category(static_cast<utf8proc_int32_t>(c));
}

Class compute_class(uint32_t c) {
  if (is_space(c)) return Class::kSpace;
  switch (category(c)) {
    case UTF8PROC_CATEGORY_LU:
    case UTF8PROC_CATEGORY_LL:
    case UTF8PROC_CATEGORY_LT:
    case UTF8PROC_CATEGORY_LM:
    case UTF8PROC_CATEGORY_LO:
      return Class::kLetter;
    case UTF8PROC_CATEGORY_ND:
    case UTF8PROC_CATEGORY_NL:
    case UTF8PROC_CATEGORY_NO:
      return Class::kNumber;
    default:
      return Class::kOther;
  }
}

void append_normalized(std::string& out, std::string_view valid, utf8proc_option_t options) {
  utf8proc_uint8_t* result = nullptr;
  const auto length = utf8proc_map(reinterpret_cast<const utf8proc_uint8_t*>(valid.data()),
                                   static_cast<utf8proc_ssize_t>(valid.size()), &result, options);
  if (length >= 0) {
    out.append(reinterpret_cast<const char*>(result), static_cast<size_t>(length));
  } else {
    out += valid;  // out of memory is the only way here: the text is valid and the options agree
  }
  std::free(result);
}

}  // namespace

bool is_space(uint32_t c) {
  if (c < 0x80) return c == ' ' || (c >= 9 && c <= 13);
  return c == 0x85 || c == 0xa0 || c == 0x1680 || (c >= 0x2000 && c <= 0x200a) || c == 0x2028 ||
         c == 0x2029 || c == 0x202f || c == 0x205f || c == 0x3000;
}

Class classify(uint32_t c) {
  static const auto kLow = [] {  // most text lies here: no call into the library
    std::array<Class, 0x800> table{};
    for (uint32_t i = 0; i < table.size(); ++i) table[i] = compute_class(i);
    return table;
  }();
  return c < kLow.size() ? kLow[c] : compute_class(c);
}

bool is_word(uint32_t c) {
  switch (category(c)) {
    case UTF8PROC_CATEGORY_LU:
    case UTF8PROC_CATEGORY_LL:
    case UTF8PROC_CATEGORY_LT:
    case UTF8PROC_CATEGORY_LM:
    case UTF8PROC_CATEGORY_LO:
    case UTF8PROC_CATEGORY_MN:
    case UTF8PROC_CATEGORY_MC:
    case UTF8PROC_CATEGORY_ME:
    case UTF8PROC_CATEGORY_ND:
    case UTF8PROC_CATEGORY_NL:
    case UTF8PROC_CATEGORY_PC:
      return true;
    default:
      // The joiners, and the circled and squared letters, which are symbols (So) but alphabetic.
      return c == 0x200c || c == 0x200d || (c >= 0x24b6 && c <= 0x24e9) || (c >= 0x1f130 && c <= 0x1f149) ||
             (c >= 0x1f150 && c <= 0x1f169) || (c >= 0x1f170 && c <= 0x1f189);
  }
}

bool is_punctuation(uint32_t c) {
  if (c < 0x80) return c > 0x20 && c < 0x7f && classify(c) == Class::kOther;
  if (c == 0x166d || c == 0x111c9) return true;  // a symbol and a mark today
  switch (category(c)) {
    case UTF8PROC_CATEGORY_PC:
    case UTF8PROC_CATEGORY_PD:
    case UTF8PROC_CATEGORY_PS:
    case UTF8PROC_CATEGORY_PE:
    case UTF8PROC_CATEGORY_PI:
    case UTF8PROC_CATEGORY_PF:
    case UTF8PROC_CATEGORY_PO:
      return !unicode_8::is_not_punctuation(c);
    default:
      return false;
  }
}

bool is_nonspacing_mark(uint32_t c) {
  return (category(c) == UTF8PROC_CATEGORY_MN && !unicode_8::is_not_nonspacing(c)) || c == 0x1734;
}

bool is_mark(uint32_t c) {
  const auto value = category(c);
  const bool mark =
      value == UTF8PROC_CATEGORY_MN || value == UTF8PROC_CATEGORY_MC || value == UTF8PROC_CATEGORY_ME;
  return (mark && !unicode_8::is_not_mark(c)) || c == 0x1cf2 || c == 0x1cf3;
}

bool is_other(uint32_t c) {
  switch (category(c)) {
    case UTF8PROC_CATEGORY_CC:
    case UTF8PROC_CATEGORY_CF:
    case UTF8PROC_CATEGORY_CO:
    case UTF8PROC_CATEGORY_CS:
      return !unicode_8::is_not_other(c);
    default:
      return false;
  }
}

bool is_chinese(uint32_t c) {
  return (c >= 0x4e00 && c <= 0x9fff) || (c >= 0x3400 && c <= 0x4dbf) || (c >= 0x20000 && c <= 0x2a6df) ||
         (c >= 0x2a700 && c <= 0x2b73f) || (c >= 0x2b740 && c <= 0x2b81f) || (c >= 0x2b920 && c <= 0x2ceaf) ||
         (c >= 0xf900 && c <= 0xfaff) || (c >= 0x2f800 && c <= 0x2fa1f);
}

void append_lower(std::string& out, uint32_t c) {
  if (c < 0x80) {
    out.push_back(static_cast<char>(c >= 'A' && c <= 'Z' ? c + 32 : c));
  } else if (c == 0x130) {  // the one character whose lower case is two
    out += "i\xcc\x87";
  } else {
    utf8::append(out, static_cast<uint32_t>(utf8proc_tolower(static_cast<utf8proc_int32_t>(c))));
  }
}

size_t grapheme_end(std::string_view text, size_t position) {
  utf8::Unit unit = utf8::next(text, position);
  size_t end = position + unit.length;
  utf8proc_int32_t state = 0;
  while (unit.code_point != utf8::kIllFormed && end < text.size()) {
    const utf8::Unit after = utf8::next(text, end);
    if (after.code_point == utf8::kIllFormed ||
        utf8proc_grapheme_break_stateful(static_cast<utf8proc_int32_t>(unit.code_point),
                                         static_cast<utf8proc_int32_t>(after.code_point), &state))
      break;
    unit = after;
    end += unit.length;
  }
  return end;
}

std::string normalize(std::string_view text, Form form) {
  int options = UTF8PROC_STABLE;
  options |= form == Form::kNfc || form == Form::kNfkc ? UTF8PROC_COMPOSE : UTF8PROC_DECOMPOSE;
  if (form == Form::kNfkc || form == Form::kNfkd) options |= UTF8PROC_COMPAT;
  std::string out;
  out.reserve(text.size());
  size_t start = 0, i = 0;
  const auto flush = [&](size_t end) {
    if (end > start)
      append_normalized(out, text.substr(start, end - start), static_cast<utf8proc_option_t>(options));
  };
  while (i < text.size()) {
    const utf8::Unit unit = utf8::next(text, i);
    if (unit.code_point == utf8::kIllFormed) {
      flush(i);
      out.push_back(text[i]);
      start = i + 1;
    }
    i += unit.length;
  }
  flush(text.size());
  return out;
}

}  // namespace doppler::unicode
