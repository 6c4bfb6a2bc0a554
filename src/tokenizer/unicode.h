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

/// \w: letters and what Unicode counts as alphabetic, marks, decimal numbers, connector punctuation, joiners.
bool is_word(uint32_t code_point);

// The next four are what the reference's BERT components see, whose tables are of Unicode 8.0.

/// Category P, or one of ASCII's symbols: what BERT counts as punctuation.
bool is_punctuation(uint32_t code_point);

/// Category M (a combining mark), and Mn alone.
bool is_mark(uint32_t code_point);
bool is_nonspacing_mark(uint32_t code_point);

/// Categories Cc, Cf, Co and Cs: control, format, private use, surrogates.
bool is_other(uint32_t code_point);

/// The blocks of Chinese characters that BERT sets apart.
bool is_chinese(uint32_t code_point);

/// Appends the lower case of a character (Unicode's full mapping without context).
void append_lower(std::string& out, uint32_t code_point);

/// The end of the extended grapheme cluster that starts at `position`. An ill-formed byte stands alone.
size_t grapheme_end(std::string_view text, size_t position);

enum class Form : uint8_t { kNfc, kNfd, kNfkc, kNfkd };

/// Normalises the well-formed stretches of `text`; ill-formed bytes stay as they are.
std::string normalize(std::string_view text, Form form);

}  // namespace doppler::unicode
