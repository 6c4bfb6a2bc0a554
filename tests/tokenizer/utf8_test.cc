#include "tokenizer/utf8.h"

#include <doctest/doctest.h>

using namespace doppler;

TEST_CASE("utf8: characters, and ill-formed bytes one by one") {
  const auto unit = [](std::string_view text) { return utf8::next(text, 0); };
  CHECK(unit("a").code_point == 'a');
  CHECK(unit("\xc3\xa9").code_point == 0xe9);
  CHECK(unit("\xe2\x96\x81").code_point == 0x2581);
  CHECK(unit("\xf0\x9f\x98\x8a").code_point == 0x1f60a);
  CHECK(unit("\xf4\x8f\xbf\xbf").code_point == 0x10ffff);
  // overlong forms, surrogates, beyond U+10FFFF, lone continuation, cut short
  for (const char* bad :
       {"\xc0\x80", "\xc1\xbf", "\xe0\x80\x80", "\xed\xa0\x80", "\xf0\x80\x80\x80", "\xf4\x90\x80\x80",
        "\xf5\x80\x80\x80", "\xff", "\x80", "\xe2\x96", "\xf0\x9f\x98"}) {
    CAPTURE(bad);
    CHECK(unit(bad).code_point == utf8::kIllFormed);
    CHECK(unit(bad).length == 1);
    CHECK_FALSE(utf8::valid(bad));
  }
}

TEST_CASE("utf8: every code point survives append, next and previous") {
  for (uint32_t c = 0; c <= 0x10ffff; c += c < 0x3000 ? 1 : 37) {
    if (c >= 0xd800 && c < 0xe000) continue;
    std::string text = "x";
    utf8::append(text, c);
    const utf8::Unit forward = utf8::next(text, 1), back = utf8::previous(text, text.size());
    if (forward.code_point != c || back.code_point != c || forward.length != text.size() - 1) {
      CAPTURE(c);
      CHECK(forward.code_point == c);
      CHECK(back.code_point == c);
    }
  }
}

TEST_CASE("utf8: sanitize replaces each maximal ill-formed part once") {
  const std::string r(utf8::kReplacement);
  CHECK(utf8::sanitize("ok \xc3\xa9") == "ok \xc3\xa9");
  CHECK(utf8::sanitize("\xe2\x96") == r);  // cut short: one
  CHECK(utf8::sanitize("\xe2\x96 ") == r + " ");
  CHECK(utf8::sanitize("\xc0\x80") == r + r);  // never valid: one a byte
  CHECK(utf8::sanitize("\xf0\x9f\x98g\xff") == r + "g" + r);
  CHECK(utf8::sanitize("\xed\xa0\x80") == r + r + r);
}

TEST_CASE("utf8: incomplete_tail finds what more bytes could complete") {
  CHECK(utf8::incomplete_tail("abc") == 0);
  CHECK(utf8::incomplete_tail("a\xc3") == 1);
  CHECK(utf8::incomplete_tail("a\xe2\x96") == 2);
  CHECK(utf8::incomplete_tail("\xf0\x9f\x98") == 3);
  CHECK(utf8::incomplete_tail("\xf0\x9f\x98\x8a") == 0);
  CHECK(utf8::incomplete_tail("\xc3\xa9") == 0);
  CHECK(utf8::incomplete_tail("\xe0\x80") == 0);  // overlong already
  CHECK(utf8::incomplete_tail("\xff") == 0);
  CHECK(utf8::incomplete_tail("\x80\x80") == 0);
}
