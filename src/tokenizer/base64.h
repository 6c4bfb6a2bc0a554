#pragma once
// Base64 (RFC 4648), for binary parts of tokenizer.json.
#include <optional>
#include <string>
#include <string_view>

namespace doppler::base64 {

std::string encode(std::string_view bytes);

/// The bytes, or nothing if `text` holds anything but the alphabet and padding at its end.
std::optional<std::string> decode(std::string_view text);

}  // namespace doppler::base64
