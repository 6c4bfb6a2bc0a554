#include "tokenizer/byte_tokens.h"

#include <fmt/format.h>

namespace doppler {

int byte_token_value(std::string_view text) {
  if (text.size() != 6 || !text.starts_with("<0x") || text[5] != '>') return -1;
  int value = 0;
  for (const char c : text.substr(3, 2)) {
    const int digit = c >= '0' && c <= '9' ? c - '0' : c >= 'A' && c <= 'F' ? c - 'A' + 10 : -1;
    if (digit < 0) return -1;
    value = value * 16 + digit;
  }
  return value;
}

std::string byte_token_text(unsigned char byte) { return fmt::format("<0x{:02X}>", byte); }

}  // namespace doppler
