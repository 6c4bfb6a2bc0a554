#pragma once
// The few Unicode properties pre-tokenizers need, and normalisation.
#include <cstdint>
#include <string>
#include <string_view>

namespace doppler::unicode {

enum class Class : uint8_t { kLetter, kNumber, kSpace, kOther };

/// \p{L}, \p{N}, \s (White_Space) or none of them. Ill-formed bytes (utf8::kIllFormed) are kOther.
Class classify(uint32_t code_point);
bool is_space(uint32_t code_point);

/// \w: letters, marks, decimal numbers and letter numbers, connector punctuation.
bool is_word(uint32_t code_point);

enum class Form : uint8_t { kNfc, kNfd, kNfkc, kNfkd };

/// Normalises the well-formed stretches of `text`; ill-formed bytes stay as they are.
std::string normalize(std::string_view text, Form form);

}  // namespace doppler::unicode
