#include "tokenizer/support.h"

using namespace doppler;
using nlohmann::json;

namespace {

std::string tiny_json() { return test::read_golden("rdrr-original/gemma3-f16/tokenizer.json"); }

// A vocabulary of characters with byte fallback, as small as one can be.
json small_file() {
  return json::parse(
      R"({"added_tokens": [], "normalizer": null, "pre_tokenizer": null, "post_processor": null,
    "decoder": {"type": "Fuse"}, "model": {"type": "BPE", "unk_token": null, "byte_fallback": false,
    "vocab": {"a": 0, "b": 1, "ab": 2, "c": 3, "<x>": 4, "<y>": 5, "q": 6, " ": 7, "_": 8},
    "merges": [["a", "b"]]}})");
}

void check_refused(const json& file, ErrorCode code, const std::string& part) {
  auto vocab = vocab_from_tokenizer_json(file.dump());
  auto result = vocab ? make_tokenizer(std::move(*vocab)) : tl::unexpected<Error>(vocab.error());
  REQUIRE_FALSE(result);
  CHECK(result.error().code == code);
  CHECK_MESSAGE(result.error().message.find(part) != std::string::npos, result.error().message);
}

}  // namespace

TEST_CASE("tokenizer.json: the ids of Hugging Face tokenizers for a byte-level file") {
  const auto tokenizer = test::tokenizer_of(vocab_from_tokenizer_json(tiny_json()));
  const auto again = test::tokenizer_of(vocab_from_tokenizer_json(to_tokenizer_json(tokenizer->vocab())));
  for (const json& item : test::golden_json("tokenizer/byte-level-tiny-sample.json")) {
    const auto text = item["text"].get<std::string>();
    const auto ids = item["ids"].get<std::vector<int32_t>>();
    CAPTURE(text);
    CHECK(tokenizer->encode(text) == ids);
    CHECK(again->encode(text) == ids);
    CHECK(tokenizer->decode(ids) == text);
  }
}

TEST_CASE("tokenizer.json: writing and reading keeps every part") {
  json file = small_file();
  file["added_tokens"] = json::parse(R"([{"id": 4, "content": "<x>", "single_word": true, "lstrip": true,
    "rstrip": false, "normalized": false, "special": true}, {"id": 5, "content": "<y>", "single_word": false,
    "lstrip": false, "rstrip": true, "normalized": true, "special": false}])");
  file["normalizer"] = json::parse(R"({"type": "Sequence", "normalizers": [{"type": "NFC"},
    {"type": "Prepend", "prepend": "_"}, {"type": "Replace", "pattern": {"String": " "}, "content": "_"},
    {"type": "Replace", "pattern": {"Regex": "c+"}, "content": "\"c\\\n\u0001"}]})");
  file["pre_tokenizer"] = json::parse(R"({"type": "Sequence", "pretokenizers": [
    {"type": "Split", "pattern": {"Regex": "q\\s"}, "behavior": "MergedWithNext", "invert": true},
    {"type": "Digits", "individual_digits": true},
    {"type": "Metaspace", "replacement": "_", "prepend_scheme": "first", "split": false}]})");
  file["post_processor"] = json::parse(R"({"type": "TemplateProcessing", "single": [
    {"SpecialToken": {"id": "<x>", "type_id": 0}}, {"Sequence": {"id": "A", "type_id": 0}},
    {"SpecialToken": {"id": "<y>", "type_id": 0}}], "pair": [], "special_tokens": {
    "<x>": {"id": "<x>", "ids": [4], "tokens": ["<x>"]}, "<y>": {"id": "<y>", "ids": [5], "tokens": ["<y>"]}}})");
  file["decoder"] =
      json::parse(R"({"type": "Sequence", "decoders": [{"type": "ByteFallback"}, {"type": "Fuse"},
    {"type": "Strip", "content": " ", "start": 1, "stop": 0}]})");
  const VocabData vocab = test::value_of(vocab_from_tokenizer_json(file.dump()));
  const std::string written = to_tokenizer_json(vocab);
  CHECK(to_tokenizer_json(test::value_of(vocab_from_tokenizer_json(written))) == written);
  const json parsed = json::parse(written);
  for (const char* key : {"added_tokens", "normalizer", "pre_tokenizer", "decoder"}) {
    CAPTURE(key);
    CHECK(parsed[key] == file[key]);
  }
  CHECK(parsed["post_processor"]["single"] == file["post_processor"]["single"]);
  CHECK(parsed["model"]["vocab"] == file["model"]["vocab"]);
  CHECK(parsed["model"]["merges"] == file["model"]["merges"]);
  const auto tokenizer = test::value_of(make_tokenizer(vocab));
  CHECK(tokenizer->encode("", {.bos = BosRule::kModel}) == std::vector<int32_t>{4, 5});
}

TEST_CASE("tokenizer.json: added tokens match with their flags") {
  json file = small_file();
  const auto added = [](int id, const char* text, const char* flag, bool special) {
    json token = {{"id", id},        {"content", text},     {"single_word", false}, {"lstrip", false},
                  {"rstrip", false}, {"normalized", false}, {"special", special}};
    if (flag != nullptr) token[flag] = true;
    return token;
  };
  using Ids = std::vector<int32_t>;
  const auto ids = [&](const json& token, const char* text, bool parse_special) {
    file["added_tokens"] = json::array({token});
    return test::tokenizer_of(vocab_from_tokenizer_json(file.dump()))
        ->encode(text, {.parse_special = parse_special});
  };
  CHECK(ids(added(4, "<x>", nullptr, true), "a<x>b", true) == Ids{0, 4, 1});
  CHECK(ids(added(4, "<x>", nullptr, true), "a<x>b", false) == Ids{2});  // < x > have no token, so a meets b
  CHECK(ids(added(4, "<x>", nullptr, false), "a<x>b", false) == Ids{0, 4, 1});
  CHECK(ids(added(4, "<x>", "lstrip", false), "a <x> b", false) == Ids{0, 4, 7, 1});
  CHECK(ids(added(4, "<x>", "rstrip", false), "a <x> b", false) == Ids{0, 7, 4, 1});
  CHECK(ids(added(6, "q", "single_word", false), "q aq q", false) == Ids{6, 7, 0, 6, 7, 6});
  file["normalizer"] = json::parse(R"({"type": "Replace", "pattern": {"String": "c"}, "content": "<x>"})");
  CHECK(ids(added(4, "<x>", "normalized", false), "ac", false) == Ids{0, 4});
  CHECK(ids(added(4, "<x>", nullptr, false), "ac", false) == Ids{0});
}

TEST_CASE("tokenizer.json: merges in both spellings, keys in any order") {
  const char* text = R"({"model": {"merges": ["a b"], "vocab": {"b": 1, "ab": 2, "a": 0}}, "decoder": null})";
  const auto tokenizer = test::tokenizer_of(vocab_from_tokenizer_json(text));
  CHECK(tokenizer->encode("aab") == std::vector<int32_t>{0, 2});
}

TEST_CASE("tokenizer.json: special tokens from tokenizer_config.json") {
  json file = small_file();
  const char* config =
      R"({"bos_token": {"content": "<x>"}, "eos_token": "<y>", "pad_token": null, "unk_token": "q",
    "tokenizer_class": "LlamaTokenizerFast", "add_bos_token": true, "add_eos_token": false})";
  const VocabData vocab = test::value_of(vocab_from_tokenizer_json(file.dump(), config));
  CHECK(vocab.bos == 4);
  CHECK(vocab.eos == 5);
  CHECK(vocab.unk == 6);
  CHECK_FALSE(vocab.pad);
  CHECK(vocab.prefix == std::vector<int32_t>{4});
  CHECK(vocab.end_ids == std::vector<int32_t>{5});
}

TEST_CASE("tokenizer.json: unknown components are refused by name") {
  const auto with = [](const char* key, const char* part) {
    json file = small_file();
    file[key] = json::parse(part);
    return file;
  };
  const auto code = ErrorCode::kUnsupported;
  check_refused(with("normalizer", R"({"type": "ByteLevel"})"), code, "ByteLevel");
  check_refused(with("pre_tokenizer", R"({"type": "UnicodeScripts"})"), code, "UnicodeScripts");
  check_refused(with("decoder", R"({"type": "CTC"})"), code, "CTC");
  check_refused(with("decoder", R"({"type": "WordPiece"})"), code, "WordPiece");  // of a BPE model
  check_refused(with("post_processor", R"({"type": "PairProcessing"})"), code, "PairProcessing");
  check_refused(with("post_processor", R"({"type": "TemplateProcessing", "single": [
    {"Sequence": {"id": "A", "type_id": 0}}, {"Sequence": {"id": "B", "type_id": 0}}]})"),
                code, "one sequence");
  check_refused(with("pre_tokenizer", R"({"type": "ByteLevel"})"), code, "ByteLevel");
  json file = small_file();
  file["model"]["type"] = "WordLevel";
  check_refused(file, code, "WordLevel");
  file = small_file();
  file["model"]["dropout"] = 0.1;
  check_refused(file, code, "dropout");
}

TEST_CASE("tokenizer.json: malformed files are errors") {
  const auto bad = ErrorCode::kBadFile;
  for (const char* text : {"",
                           "[]",
                           "{",
                           "null",
                           "{}",
                           R"({"model": 3})",
                           R"({"model": {}})",
                           R"({"model": {"vocab": [], "merges": []}})",
                           R"({"model": {"vocab": {"a": -1}, "merges": []}})",
                           R"({"model": {"vocab": {"a": 4000000000}, "merges": []}})",
                           R"({"model": {"vocab": {"a": 0, "b": 0}, "merges": []}})",
                           R"({"model": {"vocab": {"a": 0}, "merges": ["a"]}})",
                           R"({"model": {"vocab": {"a": 0}, "merges": [["a", "a", "a"]]}})",
                           R"({"model": {"vocab": {"a": 0}, "merges": [["a", "b"]]}})",
                           R"({"model": {"vocab": {"a": 0}, "merges": [7]}})",
                           R"({"model": {"type": "Unigram", "vocab": {}}})",
                           R"({"model": {"type": "Unigram", "vocab": [["a"]]}})",
                           R"({"model": {"type": "Unigram", "vocab": [["a", "b"]]}})",
                           R"({"model": {"type": "Unigram", "vocab": [["a", 0, 0]]}})",
                           R"({"model": {"type": "Unigram", "unk_id": 1, "vocab": [["a", 0]]}})",
                           R"({"model": {"type": "WordPiece", "vocab": [["a", 0]]}})"}) {
    CAPTURE(text);
    const auto result = vocab_from_tokenizer_json(text);
    REQUIRE_FALSE(result);
    CHECK(result.error().code == bad);
  }
  json file = small_file();
  file["model"]["merges"] = json::parse(R"([["b", "a"]])");
  check_refused(file, bad, "'ba'");
  file = small_file();
  file["added_tokens"] = json::parse(R"([{"id": 2000000000, "content": "z"}])");
  check_refused(file, bad, "2000000000");
  file["added_tokens"] = json::parse(R"([{"id": 1, "content": "z"}])");
  check_refused(file, bad, "'z'");
  file["added_tokens"] = json::parse(R"([{"id": 9, "content": "<x>"}])");
  check_refused(file, bad, "4 and 9");
  file = small_file();
  file["pre_tokenizer"] =
      json::parse(R"({"type": "Split", "pattern": {"Regex": "(a"}, "behavior": "Isolated"})");
  check_refused(file, bad, "compile");
  file = small_file();
  file["normalizer"] = json::parse(R"({"type": "Precompiled", "precompiled_charsmap": "*"})");
  check_refused(file, bad, "base64");
  file["normalizer"] = json::parse(R"({"type": "Precompiled", "precompiled_charsmap": "/////w=="})");
  check_refused(file, bad, "character map");
  file = small_file();
  file["post_processor"] = json::parse(R"({"type": "BertProcessing", "cls": ["a", 0], "sep": ["b"]})");
  check_refused(file, bad, "'sep'");
}
