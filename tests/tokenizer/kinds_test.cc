// Small trained tokenizers of every kind against Hugging Face tokenizers and SentencePiece: 300 random
// strings each, to ids and back (tools/make_tokenizer_golden.py).
#include "tokenizer/support.h"

using namespace doppler;
using nlohmann::json;

namespace {

using Ids = std::vector<int32_t>;

std::unique_ptr<Tokenizer> golden_tokenizer(const std::string& name) {
  if (name.starts_with("sp-"))
    return test::tokenizer_of(vocab_from_sentencepiece(test::read_golden("tokenizer/" + name + ".model")));
  return test::tokenizer_of(
      vocab_from_tokenizer_json(test::read_golden("tokenizer/" + name + ".tokenizer.json")));
}

void check_sample(const Tokenizer& tokenizer, const std::string& name, bool decoded = true) {
  const json sample = test::golden_json("tokenizer/" + name + "-sample.json");
  REQUIRE(sample.size() == 300);
  for (const json& item : sample) {
    const auto text = item["text"].get<std::string>();
    const auto ids = item["ids"].get<Ids>();
    CAPTURE(text);
    CHECK(tokenizer.encode(text) == ids);
    if (decoded) CHECK(tokenizer.decode(ids, {.skip_special = true}) == item["decoded"].get<std::string>());
  }
}

// As the file holds it, and as it is written for a converted model.
void check_json_kind(const std::string& name, bool decoded = true) {
  const auto tokenizer = golden_tokenizer(name);
  check_sample(*tokenizer, name, decoded);
  const std::string written = to_tokenizer_json(tokenizer->vocab());
  const auto again = test::tokenizer_of(vocab_from_tokenizer_json(written));
  check_sample(*again, name, decoded);
  CHECK(to_tokenizer_json(again->vocab()) == written);
}

}  // namespace

TEST_CASE("kinds: WordPiece, lower case without accents") { check_json_kind("wordpiece-uncased"); }
TEST_CASE("kinds: WordPiece, as written") { check_json_kind("wordpiece-cased"); }
TEST_CASE("kinds: Unigram, words by white space") { check_json_kind("unigram-t5"); }
TEST_CASE("kinds: Unigram, normalised by a character map") { check_json_kind("unigram-precompiled"); }
TEST_CASE("kinds: Unigram, bytes for what has no token") { check_json_kind("unigram-bytes"); }
TEST_CASE("kinds: BPE with a subword prefix and a word suffix") { check_json_kind("bpe-affixes"); }
// Back to text the oracle leaves "</w>" in, and its caller makes it a space; here it is one at once.
TEST_CASE("kinds: byte-level BPE with a word suffix (CLIP)") { check_json_kind("clip", false); }
TEST_CASE("kinds: SentencePiece unigram with bytes and user-defined pieces") {
  check_sample(*golden_tokenizer("sp-unigram"), "sp-unigram");
}
TEST_CASE("kinds: SentencePiece unigram, folded case, no dummy prefix") {
  check_sample(*golden_tokenizer("sp-unigram-plain"), "sp-unigram-plain");
}
TEST_CASE("kinds: SentencePiece BPE that keeps spaces") {
  check_sample(*golden_tokenizer("sp-bpe"), "sp-bpe");
}
TEST_CASE("kinds: SentencePiece BPE with spaces as suffixes") {
  check_sample(*golden_tokenizer("sp-bpe-suffix"), "sp-bpe-suffix");
}

TEST_CASE("kinds: all-MiniLM-L6-v2, cut to 256 ids with [SEP] kept") {
  const auto tokenizer = golden_tokenizer("minilm");
  const json refs = test::golden_json("tokenizer/minilm-references.json");
  REQUIRE(refs.size() == 12);
  for (const json& ref : refs) {
    const auto text = ref["text"].get<std::string>();
    CAPTURE(text);
    CHECK(tokenizer->encode(text, {.bos = BosRule::kModel, .max_ids = 256}) == ref["ids"].get<Ids>());
  }
  check_sample(*tokenizer, "minilm");
  CHECK(tokenizer->encode("", {.bos = BosRule::kModel, .max_ids = 256}) == Ids{101, 102});
  CHECK(tokenizer->encode("hello hello", {.bos = BosRule::kModel, .max_ids = 3}) == Ids{101, 7592, 102});
  CHECK(tokenizer->encode("hello hello", {.bos = BosRule::kModel, .max_ids = 1}) == Ids{101, 102});
  CHECK(tokenizer->encode("hello hello", {.max_ids = 1}) == Ids{7592});
}

TEST_CASE("kinds: the end of a word is a space in text, at the end of a text nothing") {
  const auto tokenizer = golden_tokenizer("clip");
  const Ids ids = tokenizer->encode("The engine  runs.", {.bos = BosRule::kModel});
  CHECK(ids.front() == 596);
  CHECK(ids.back() == 597);
  CHECK(tokenizer->decode(ids, {.skip_special = true}) == "the engine runs .");
}

TEST_CASE("kinds: a GGUF vocabulary of model bert, words marked by U+2581") {
  const auto original = golden_tokenizer("wordpiece-uncased");
  std::vector<std::string> texts;
  std::vector<int64_t> types;
  for (int32_t id = 0; id < original->vocab_size(); ++id) {
    const std::string text(original->token_text(id));
    const bool control = original->is_control(id);
    texts.push_back(control ? text : text.starts_with("##") ? text.substr(2) : "\xe2\x96\x81" + text);
    types.push_back(static_cast<int64_t>(control ? TokenType::kControl : TokenType::kNormal));
  }
  const std::vector<std::string_view> tokens(texts.begin(), texts.end());
  GgufVocabView view;
  view.model = "bert";
  view.tokens = tokens;
  view.types = types;
  view.unk = 1;
  for (const bool named : {true, false}) {
    view.cls = named ? std::optional<uint64_t>(2) : std::nullopt;
    view.sep = named ? std::optional<uint64_t>(3) : std::nullopt;
    const auto tokenizer = test::tokenizer_of(vocab_from_gguf(view));
    check_sample(*tokenizer, "wordpiece-uncased");
    CHECK(tokenizer->encode("", {.bos = BosRule::kModel}) == Ids{2, 3});
  }
}

TEST_CASE("kinds: SentencePiece files that end early or contradict themselves are errors") {
  const std::string whole = test::read_golden("tokenizer/sp-bpe.model");
  for (size_t size = 0; size < whole.size(); size += size < 512 ? 1 : 97) {
    const auto vocab = vocab_from_sentencepiece(std::string_view(whole).substr(0, size));
    CAPTURE(size);
    if (vocab) {
      CHECK(vocab->tokens.size() < 1201);
    } else {
      CHECK(vocab.error().code == ErrorCode::kBadFile);
    }
  }
  const auto check_refused = [](std::string_view bytes, ErrorCode code, const char* part) {
    const auto vocab = vocab_from_sentencepiece(bytes);
    REQUIRE_FALSE(vocab);
    CHECK(vocab.error().code == code);
    CHECK_MESSAGE(vocab.error().message.find(part) != std::string::npos, vocab.error().message);
  };
  using namespace std::string_view_literals;
  const auto bad = ErrorCode::kBadFile;
  check_refused(""sv, bad, "none");
  check_refused("\x0a\xff\xff\xff\xff\x0f"sv, bad, "4294967295 bytes");
  check_refused("\x0a\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01"sv, bad, "10 bytes");
  check_refused("\x0b"sv, bad, "wire type 3");
  check_refused("\x00\x00"sv, bad, "field number");
  check_refused("\x0a\x00"sv, bad, "piece 0");
  check_refused("\x0a\x03\x0a\x01\xff"sv, bad, "UTF-8");
  check_refused(
      "\x0a\x05\x0a\x01"
      "a\x18\x09"sv,
      bad, "1..6");
  check_refused(
      "\x0a\x08\x0a\x01"
      "a\x15\x00\x00\xc0\x7f"sv,
      bad, "finite");
  check_refused(
      "\x0a\x03\x0a\x01"
      "a\x0a\x03\x0a\x01"
      "a"sv,
      bad, "both 'a'");
  check_refused(
      "\x0a\x03\x0a\x01"
      "a\x12\x02\x18\x03"sv,
      ErrorCode::kUnsupported, "unigram");
}
