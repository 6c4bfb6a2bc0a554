#include "tokenizer/utf8.h"

#include <algorithm>

namespace doppler::utf8 {
namespace {

constexpr bool continuation(unsigned char c) { return (c & 0xc0) == 0x80; }

// What the first byte promises: the length of the character (0 if it cannot start one) and the range of the
// second byte, which rules out overlong forms, surrogates and values above U+10FFFF.
struct Lead {
  uint32_t length;
  unsigned char low, high;
};
constexpr Lead lead(unsigned char c) {
  if (c < 0x80) return {1, 0, 0};
  if (c < 0xc2) return {0, 0, 0};
  if (c < 0xe0) return {2, 0x80, 0xbf};
  if (c < 0xf0)
    return {3, static_cast<unsigned char>(c == 0xe0 ? 0xa0 : 0x80),
            static_cast<unsigned char>(c == 0xed ? 0x9f : 0xbf)};
  if (c < 0xf5)
    return {4, static_cast<unsigned char>(c == 0xf0 ? 0x90 : 0x80),
            static_cast<unsigned char>(c == 0xf4 ? 0x8f : 0xbf)};
  return {0, 0, 0};
}

// Bytes from `position` that agree with a well-formed character, and whether they are all of it.
struct Prefix {
  uint32_t agreeing;
  bool whole;
};
Prefix prefix(std::string_view text, size_t position) {
  const auto at = [&](size_t i) { return static_cast<unsigned char>(text[position + i]); };
  const Lead l = lead(at(0));
  if (l.length <= 1) return {l.length, l.length == 1};
  const size_t available = std::min<size_t>(l.length, text.size() - position);
  uint32_t n = 1;
  while (n < available && (n == 1 ? at(1) >= l.low && at(1) <= l.high : continuation(at(n)))) ++n;
  return {n, n == l.length};
}

}  // namespace

Unit next(std::string_view text, size_t position) {
  const Prefix p = prefix(text, position);
  if (!p.whole) return {kIllFormed, 1};
  const auto at = [&](size_t i) {
    return static_cast<uint32_t>(static_cast<unsigned char>(text[position + i]));
  };
  switch (p.agreeing) {
    case 1:
      return {at(0), 1};
    case 2:
      return {(at(0) & 0x1f) << 6 | (at(1) & 0x3f), 2};
    case 3:
      return {(at(0) & 0x0f) << 12 | (at(1) & 0x3f) << 6 | (at(2) & 0x3f), 3};
    default:
      return {(at(0) & 0x07) << 18 | (at(1) & 0x3f) << 12 | (at(2) & 0x3f) << 6 | (at(3) & 0x3f), 4};
  }
}

Unit previous(std::string_view text, size_t position) {
  for (size_t length = 1; length <= 4 && length <= position; ++length) {
    const Unit unit = next(text, position - length);
    if (unit.code_point != kIllFormed && unit.length == length) return unit;
    if (!continuation(static_cast<unsigned char>(text[position - length]))) break;
  }
  return {kIllFormed, 1};
}

bool valid(std::string_view text) {
  for (size_t i = 0; i < text.size();) {
    const Unit unit = next(text, i);
    if (unit.code_point == kIllFormed) return false;
    i += unit.length;
  }
  return true;
}

void append(std::string& out, uint32_t c) {
  const auto put = [&](uint32_t byte) { out.push_back(static_cast<char>(byte)); };
  if (c < 0x80) {
    put(c);
  } else if (c < 0x800) {
    put(0xc0 | c >> 6);
    put(0x80 | (c & 0x3f));
  } else if (c < 0x10000) {
    put(0xe0 | c >> 12);
    put(0x80 | (c >> 6 & 0x3f));
    put(0x80 | (c & 0x3f));
  } else {
    put(0xf0 | c >> 18);
    put(0x80 | (c >> 12 & 0x3f));
    put(0x80 | (c >> 6 & 0x3f));
    put(0x80 | (c & 0x3f));
  }
}

size_t incomplete_tail(std::string_view text) {
  for (size_t length = 1; length <= 3 && length <= text.size(); ++length) {
    const size_t start = text.size() - length;
    if (continuation(static_cast<unsigned char>(text[start]))) continue;
    const Prefix p = prefix(text, start);
    return !p.whole && p.agreeing == length ? length : 0;
  }
  return 0;
}

std::string sanitize(std::string_view text) {
  std::string out;
  out.reserve(text.size());
  for (size_t i = 0; i < text.size();) {
    const Prefix p = prefix(text, i);
    const size_t length = std::max(p.agreeing, 1u);
    out += p.whole ? text.substr(i, length) : kReplacement;
    i += length;
  }
  return out;
}

}  // namespace doppler::utf8
