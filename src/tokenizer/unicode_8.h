#pragma once
// What Unicode 8.0 did not know yet: characters that today's tables put in a category and its tables do not.
#include <cstdint>

namespace doppler::unicode_8 {

/// Whether a character of category P, C (without unassigned), Mn or M is outside it in Unicode 8.0.
bool is_not_punctuation(uint32_t code_point);
bool is_not_other(uint32_t code_point);
bool is_not_nonspacing(uint32_t code_point);
bool is_not_mark(uint32_t code_point);

}  // namespace doppler::unicode_8
