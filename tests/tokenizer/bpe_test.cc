#include <algorithm>
#include <optional>

#include "tokenizer/support.h"
#include "tokenizer/utf8.h"

using namespace doppler;

namespace {

// BPE by its definition: look at every adjacent pair, merge the best, leftmost first; start again. n^3,
// obvious.
std::vector<std::string> naive_bpe(const std::vector<std::string>& pieces, std::string_view text) {
  std::vector<std::string> symbols;
  for (size_t i = 0; i < text.size();) {
    const utf8::Unit unit = utf8::next(text, i);
    symbols.emplace_back(text.substr(i, unit.length));
    i += unit.length;
  }
  const auto rank = [&](const std::string& token) {
    return static_cast<size_t>(std::find(pieces.begin(), pieces.end(), token) - pieces.begin());
  };
  while (true) {
    size_t best = pieces.size(), at = 0;
    for (size_t i = 0; i + 1 < symbols.size(); ++i) {
      const size_t r = rank(symbols[i] + symbols[i + 1]);
      if (rank(symbols[i]) < pieces.size() && rank(symbols[i + 1]) < pieces.size() && r < best) {
        best = r;
        at = i;
      }
    }
    if (best == pieces.size()) return symbols;
    symbols[at] += symbols[at + 1];
    symbols.erase(symbols.begin() + static_cast<std::ptrdiff_t>(at) + 1);
  }
}

}  // namespace

TEST_CASE("bpe: scores give what the definition gives, on random vocabularies and texts") {
  const std::vector<std::string> alphabet = {"a", "b", "c", "\xc3\xa9", "\xe2\x96\x81"};
  std::mt19937 random(5);
  for (int round = 0; round < 60; ++round) {
    CAPTURE(round);
    std::vector<std::string> pieces;
    for (int i = 0; i < 40; ++i) {
      std::string piece = test::random_text(random, alphabet, 2 + random() % 4);
      if (std::find(pieces.begin(), pieces.end(), piece) == pieces.end()) pieces.push_back(std::move(piece));
    }
    pieces.insert(pieces.end(), alphabet.begin(), alphabet.end());
    const test::ScoredVocab scored(pieces);
    const auto tokenizer = test::tokenizer_of(vocab_from_gguf(scored.view));
    for (int i = 0; i < 40; ++i) {
      const std::string text = test::random_text(random, alphabet, random() % 40);
      CHECK(test::spellings(*tokenizer, tokenizer->encode(text)) == naive_bpe(pieces, text));
    }
  }
}

TEST_CASE("bpe: characters without a token become byte tokens, ill-formed bytes too") {
  const test::ScoredVocab scored({"a"});
  const auto tokenizer = test::tokenizer_of(vocab_from_gguf(scored.view));
  using Texts = std::vector<std::string>;
  CHECK(test::spellings(*tokenizer, tokenizer->encode("a\xc3\xa9")) == Texts{"a", "<0xC3>", "<0xA9>"});
  CHECK(test::spellings(*tokenizer, tokenizer->encode("\xff"
                                                      "a\xe2\x96")) ==
        Texts{"<0xFF>", "a", "<0xE2>", "<0x96>"});
  CHECK(tokenizer->decode_bytes(tokenizer->encode("\xff"
                                                  "a\xe2\x96")) ==
        "\xff"
        "a\xe2\x96");
  CHECK(tokenizer->decode(tokenizer->encode("\xff"
                                            "a\xe2\x96")) ==
        "\xef\xbf\xbd"
        "a\xef\xbf\xbd");
}

TEST_CASE("bpe: text never spells control, unknown or byte tokens by merging") {
  const test::ScoredVocab scored(
      {"<", "s", ">", "/", "u", "n", "k", "0", "x", "A", "<s", "<0x0", "<un", "k>", "A>"});
  const auto tokenizer = test::tokenizer_of(vocab_from_gguf(scored.view));
  for (const char* text : {"<s>", "</s>", "<unk>", "<0x0A>"}) {
    CAPTURE(text);
    for (const int32_t id : tokenizer->encode(text)) CHECK(id >= 3 + 256);
    CHECK(tokenizer->decode(tokenizer->encode(text)) == text);
  }
  CHECK(tokenizer->encode("<s></s>", {.parse_special = true}) == std::vector<int32_t>{1, 2});
}

TEST_CASE("bpe: megabytes of one character take n log n") {
  const test::ScoredVocab scored({"aa", "aaaa", "aaaaaaaa", "a", " ", "b"});
  const auto tokenizer = test::tokenizer_of(vocab_from_gguf(scored.view));
  // A quadratic engine would need hours here. The last text is longer than a stretch may be.
  for (const size_t length : {size_t{1000000}, size_t{1000001}, size_t{9000003}}) {
    const std::string text(length, 'a');
    const auto ids = tokenizer->encode(text);
    CHECK(ids.size() < length / 8 + 16);
    CHECK(tokenizer->decode(ids) == text);
  }
}

TEST_CASE("bpe: bos and eos by the model's rule, always and never") {
  test::ScoredVocab scored({"a"});
  scored.view.add_eos = true;
  const auto tokenizer = test::tokenizer_of(vocab_from_gguf(scored.view));
  const int32_t a = *tokenizer->token_id("a");
  CHECK(tokenizer->encode("a") == std::vector<int32_t>{a});
  CHECK(tokenizer->encode("a", {.bos = BosRule::kModel}) == std::vector<int32_t>{1, a, 2});
  scored.view.add_bos = false;
  scored.view.add_eos = false;
  const auto without = test::tokenizer_of(vocab_from_gguf(scored.view));
  CHECK(without->encode("a", {.bos = BosRule::kModel}) == std::vector<int32_t>{a});
  CHECK(without->encode("a", {.bos = BosRule::kAlways}) == std::vector<int32_t>{1, a});
}

TEST_CASE("bpe: the space prefix stands before every stretch of text and goes when a whole text is decoded") {
  test::ScoredVocab scored({"\xe2\x96\x81", "a",
                            "\xe2\x96\x81"
                            "a"});
  scored.view.add_space_prefix = true;
  const auto tokenizer = test::tokenizer_of(vocab_from_gguf(scored.view));
  const int32_t word = *tokenizer->token_id(
      "\xe2\x96\x81"
      "a");
  CHECK(tokenizer->encode("a<s>a", {.parse_special = true}) == std::vector<int32_t>{word, 1, word});
  CHECK(tokenizer->decode(tokenizer->encode("a a")) == "a a");
  CHECK(tokenizer->encode("").empty());
}
