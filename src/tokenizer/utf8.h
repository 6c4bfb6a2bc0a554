#pragma once
// UTF-8 with defined behaviour for ill-formed bytes: each is a unit of its own.
#include <cstdint>
#include <string>
#include <string_view>

namespace doppler::utf8 {

constexpr uint32_t kIllFormed = 0xffffffffu;
constexpr std::string_view kReplacement = "\xef\xbf\xbd";  // U+FFFD

struct Unit {
  uint32_t code_point;  // kIllFormed for a byte that starts no well-formed character
  uint32_t length;      // bytes, 1 for an ill-formed one
};

/// The character or ill-formed byte at `position` (which must be inside the text).
Unit next(std::string_view text, size_t position);

/// The character or ill-formed byte that ends at `position` (> 0).
Unit previous(std::string_view text, size_t position);

bool valid(std::string_view text);
void append(std::string& out, uint32_t code_point);

/// How many bytes at the end of `text` are the start of a character that more bytes could complete (0 to 3).
size_t incomplete_tail(std::string_view text);

/// `text` with each maximal ill-formed part replaced by U+FFFD (the practice Unicode recommends).
std::string sanitize(std::string_view text);

}  // namespace doppler::utf8
