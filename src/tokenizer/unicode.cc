#include "tokenizer/unicode.h"

#include <utf8proc.h>

#include <array>
#include <cstdlib>

#include "tokenizer/utf8.h"

namespace doppler::unicode {
namespace {

Class compute_class(uint32_t c) {
  if (is_space(c)) return Class::kSpace;
  if (c > 0x10ffff) return Class::kOther;
  switch (utf8proc_category(static_cast<utf8proc_int32_t>(c))) {
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
  if (c > 0x10ffff) return false;
  switch (utf8proc_category(static_cast<utf8proc_int32_t>(c))) {
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
      return c == 0x200c || c == 0x200d;
  }
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
