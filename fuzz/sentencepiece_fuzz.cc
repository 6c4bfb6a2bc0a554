// Reads the input as a SentencePiece model; if it is one, tokenises a little text and writes it as
// tokenizer.json.
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "tokenizer/tokenizer.h"

namespace {

using namespace doppler;

void use(const Tokenizer& tokenizer, std::string_view text) {
  for (const bool special : {false, true}) {
    const auto ids = tokenizer.encode(text, {.bos = BosRule::kModel, .parse_special = special});
    for (const int32_t id : ids)
      if (id < 0 || id >= tokenizer.vocab_size()) __builtin_trap();
    if (tokenizer.decode(ids).size() > tokenizer.decode_bytes(ids).size() * 3) __builtin_trap();
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string_view input(reinterpret_cast<const char*>(data), size);
  auto vocab = vocab_from_sentencepiece(input);
  if (!vocab) return 0;
  const std::string written = to_tokenizer_json(*vocab);
  const auto tokenizer = make_tokenizer(std::move(*vocab));
  if (!tokenizer) return 0;
  use(**tokenizer, "  It's  a <test>, 42\n\xef\xbd\x81\xf0\x9f\x98\x8a\xff \xe2\x96\x81x e\xcc\x81 ");
  use(**tokenizer, input.substr(0, 512));
  if (!vocab_from_tokenizer_json(written)) __builtin_trap();  // what we write we can read
  return 0;
}
