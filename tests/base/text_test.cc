#include "base/text.h"

#include <doctest/doctest.h>

using namespace doppler;

TEST_CASE("well-formed UTF-8 passes") {
  for (const char* text : {"", "plain ASCII that is longer than eight bytes", "\xc2\x80", "\xdf\xbf",
                           "\xe0\xa0\x80", "\xed\x9f\xbf", "\xee\x80\x80", "\xef\xbf\xbf", "\xf0\x90\x80\x80",
                           "\xf4\x8f\xbf\xbf", "12345678\xe2\x96\x81word"}) {
    CAPTURE(text);
    CHECK(is_utf8(text));
  }
}

TEST_CASE("malformed UTF-8 is found") {
  for (const char* text : {"\x80", "\xff", "\xc0\x80", "\xc1\xbf", "\xc2", "\xe0\x9f\xbf", "\xe2\x96",
                           "\xed\xa0\x80", "\xf0\x8f\xbf\xbf", "\xf4\x90\x80\x80", "\xf5\x80\x80\x80",
                           "\xf0\x90\x80", "a\xc2z", "12345678\x80"}) {
    CAPTURE(printable(text));
    CHECK_FALSE(is_utf8(text));
  }
}

TEST_CASE("text for messages stays on one line and short") {
  CHECK(printable("a b~") == "a b~");
  CHECK(printable("a\nb\x7f\xff") == "a\\x0ab\\x7f\\xff");
  CHECK(printable("abcdef", 3) == "abc...");
  CHECK(printable("abc", 3) == "abc");
}
