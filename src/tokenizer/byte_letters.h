#pragma once
// GPT-2's alphabet: every byte has a printable letter, so that byte strings are text. Bytes that are
// printable in Latin-1 stand for themselves; the other 68 are U+0100 ... U+0143 in order.
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace doppler::byte_letters {

/// The letter of a byte, as a code point.
uint32_t letter_of(unsigned char byte);

/// The byte a letter stands for, or -1.
int byte_of(uint32_t code_point);

/// The bytes that `token` spells, or nothing if one of its characters is not a letter of the alphabet.
std::optional<std::string> bytes_of(std::string_view token);

}  // namespace doppler::byte_letters
