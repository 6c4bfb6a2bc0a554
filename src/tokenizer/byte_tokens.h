#pragma once
// Byte-fallback tokens: "<0x0A>" stands for the byte 0x0A.
#include <string>
#include <string_view>

namespace doppler {

/// The byte a text of the form <0xNN> names, or -1.
int byte_token_value(std::string_view text);
std::string byte_token_text(unsigned char byte);

}  // namespace doppler
