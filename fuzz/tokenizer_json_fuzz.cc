// Reads the input as a tokenizer.json; if it is one, tokenises a little text, writes it and reads it again.
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "tokenizer/tokenizer.h"

namespace {

using namespace doppler;

void use(const Tokenizer& tokenizer, std::string_view text) {
  for (const bool special : {false, true}) {
    const auto few = tokenizer.encode(text, {.bos = BosRule::kNever, .parse_special = special, .max_ids = 3});
    if (few.size() > 3) __builtin_trap();
    const auto ids = tokenizer.encode(text, {.bos = BosRule::kModel, .parse_special = special});
    for (const int32_t id : ids)
      if (id < 0 || id >= tokenizer.vocab_size()) __builtin_trap();
    StreamDecoder stream(tokenizer);
    std::string joined;
    for (const int32_t id : ids) joined += stream.push(id);
    joined += stream.finish();
    const std::string whole = tokenizer.decode(ids);
    // The first word piece of a text is its own case. Other texts may lose the space that the normalizer put
    // at their start, and the one after their last word.
    if (tokenizer.vocab().decoder.word_pieces) continue;
    if (joined.size() < whole.size() || joined.size() > whole.size() + 2) __builtin_trap();
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string_view input(reinterpret_cast<const char*>(data), size);
  auto vocab = vocab_from_tokenizer_json(input);
  if (!vocab) return 0;
  const std::string written = to_tokenizer_json(*vocab);
  const auto tokenizer = make_tokenizer(std::move(*vocab));
  if (!tokenizer) return 0;
  use(**tokenizer, "It's  a <test>, 42\n\xf0\x9f\x98\x8a\xff \xe2\x96\x81x");
  use(**tokenizer, input.substr(0, 512));
  if (!vocab_from_tokenizer_json(written)) __builtin_trap();  // what we write we can read
  return 0;
}
