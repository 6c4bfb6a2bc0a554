#include "tokenizer/byte_letters.h"

#include <array>

#include "tokenizer/utf8.h"

namespace doppler::byte_letters {
namespace {

constexpr uint32_t kAlphabetEnd = 0x144;

struct Tables {
  std::array<uint16_t, 256> letter{};
  std::array<int16_t, kAlphabetEnd> byte{};
};

constexpr Tables make_tables() {
  Tables t;
  for (auto& b : t.byte) b = -1;
  uint32_t moved = 0x100;
  for (uint32_t b = 0; b < 256; ++b) {
    const bool printable = (b >= 0x21 && b <= 0x7e) || (b >= 0xa1 && b <= 0xac) || b >= 0xae;
    const uint32_t letter = printable ? b : moved++;
    t.letter[b] = static_cast<uint16_t>(letter);
    t.byte[letter] = static_cast<int16_t>(b);
  }
  return t;
}

constexpr Tables kTables = make_tables();

}  // namespace

uint32_t letter_of(unsigned char byte) { return kTables.letter[byte]; }

int byte_of(uint32_t code_point) { return code_point < kAlphabetEnd ? kTables.byte[code_point] : -1; }

std::optional<std::string> bytes_of(std::string_view token) {
  std::string out;
  for (size_t i = 0; i < token.size();) {
    const utf8::Unit unit = utf8::next(token, i);
    const int byte = byte_of(unit.code_point);
    if (byte < 0) return std::nullopt;
    out.push_back(static_cast<char>(byte));
    i += unit.length;
  }
  return out;
}

}  // namespace doppler::byte_letters
