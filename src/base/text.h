#pragma once
// Checks and escapes for text that comes from files nobody vouches for.
#include <cstddef>
#include <string>
#include <string_view>

namespace doppler {

/// True if every byte belongs to a well-formed UTF-8 sequence (no overlong forms, surrogates or values past
/// 10FFFF).
bool is_utf8(std::string_view text);

/// `text` as it may stand in a one-line message: control and non-ASCII bytes as \xNN, cut after `limit`
/// bytes.
std::string printable(std::string_view text, size_t limit = 80);

}  // namespace doppler
