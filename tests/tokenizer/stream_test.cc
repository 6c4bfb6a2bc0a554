#include "tokenizer/support.h"
#include "tokenizer/utf8.h"

using namespace doppler;

namespace {

// A vocabulary whose pieces cut characters anywhere: every byte is a token.
std::unique_ptr<Tokenizer> byte_tokenizer() {
  static const test::ScoredVocab kScored({"word"});
  return test::tokenizer_of(vocab_from_gguf(kScored.view));
}

std::vector<int32_t> as_bytes(std::string_view text) {
  std::vector<int32_t> ids;
  for (const char c : text) ids.push_back(3 + static_cast<unsigned char>(c));
  return ids;
}

}  // namespace

TEST_CASE("stream: only whole characters come out, and all of them") {
  const auto tokenizer = byte_tokenizer();
  std::mt19937 random(3);
  const std::vector<std::string> alphabet = {
      "a", "\xc3\xa9", "\xe2\x82\xac", "\xf0\x9f\x98\x8a", "\xff", "\xe2\x96", "\xf0\x9f", "\x80", "\xc0"};
  for (int round = 0; round < 500; ++round) {
    const std::string text = test::random_text(random, alphabet, random() % 12);
    const auto ids = as_bytes(text);
    StreamDecoder stream(*tokenizer);
    std::string joined;
    for (const int32_t id : ids) {
      const std::string part = stream.push(id);
      CHECK(utf8::valid(part));
      joined += part;
    }
    joined += stream.finish();
    CHECK(joined == tokenizer->decode(ids));
    CHECK(joined == utf8::sanitize(text));
  }
}

TEST_CASE("stream: a character appears with its last byte, not before") {
  const auto tokenizer = byte_tokenizer();
  StreamDecoder stream(*tokenizer);
  const auto ids = as_bytes("\xf0\x9f\x98\x8a!");
  CHECK(stream.push(ids[0]) == "");
  CHECK(stream.push(ids[1]) == "");
  CHECK(stream.push(ids[2]) == "");
  CHECK(stream.push(ids[3]) == "\xf0\x9f\x98\x8a");
  CHECK(stream.push(ids[4]) == "!");
  CHECK(stream.finish() == "");
  CHECK(stream.push(ids[0]) == "");
  CHECK(stream.push(ids[1]) == "");
  CHECK(stream.finish() == "\xef\xbf\xbd");
}

TEST_CASE("stream: special tokens give text or nothing, as asked, ids out of range give nothing") {
  const auto tokenizer = byte_tokenizer();
  StreamDecoder shown(*tokenizer), skipped(*tokenizer, {.skip_special = true});
  CHECK(shown.push(1) == "<s>");
  CHECK(skipped.push(1) == "");
  CHECK(shown.push(-1) == "");
  CHECK(shown.push(1 << 30) == "");
  CHECK(tokenizer->token_text(-5) == "");
  CHECK_FALSE(tokenizer->is_control(1 << 30));
}
