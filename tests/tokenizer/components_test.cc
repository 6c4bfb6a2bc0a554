// Single normalizers and pre-tokenizers against Hugging Face tokenizers (tools/make_tokenizer_golden.py).
#include <cmath>

#include "tokenizer/charsmap.h"
#include "tokenizer/json_score.h"
#include "tokenizer/normalizer.h"
#include "tokenizer/pre_tokenizer.h"
#include "tokenizer/support.h"

using namespace doppler;
using nlohmann::json;

namespace {

VocabData vocab_with(const char* key, const json& part) {
  json file = json::parse(R"({"model": {"type": "BPE", "vocab": {"a": 0}, "merges": []}})");
  file[key] = part;
  return test::value_of(vocab_from_tokenizer_json(file.dump()));
}

}  // namespace

TEST_CASE("components: normalizers and pre-tokenizers give the reference's text and pieces") {
  size_t normalizers = 0, pre_tokenizers = 0;
  for (const json& item : test::golden_json("tokenizer/components.json")) {
    const char* key = item.contains("normalizer") ? "normalizer" : "pre_tokenizer";
    const std::string part = item[key].dump();
    CAPTURE(part);
    const VocabData vocab = vocab_with(key, item[key]);
    const Normalizer normalizer = test::value_of(Normalizer::make(vocab));
    const PreTokenizer pre_tokenizer = test::value_of(PreTokenizer::make(vocab.pre_tokenizer));
    for (const json& sample : item["samples"]) {
      const auto text = sample[0].get<std::string>();
      CAPTURE(text);
      if (item.contains("normalizer")) {
        CHECK(normalizer.apply(text) == sample[1].get<std::string>());
        ++normalizers;
      } else {
        std::vector<std::string> pieces;
        pre_tokenizer.run(text, true, [&](std::string_view piece) { pieces.emplace_back(piece); });
        CHECK(pieces == sample[1].get<std::vector<std::string>>());
        ++pre_tokenizers;
      }
    }
  }
  CHECK(normalizers == 15 * 12);
  CHECK(pre_tokenizers == 31 * 12);
}

TEST_CASE("components: ill-formed bytes pass the normalizers, but for BERT's cleaning") {
  const auto normalized = [](const char* part, std::string_view text) {
    return test::value_of(Normalizer::make(vocab_with("normalizer", json::parse(part)))).apply(text);
  };
  CHECK(normalized(R"({"type": "Lowercase"})", "A\xff\xc3Z\xc4\xb0") == "a\xff\xc3zi\xcc\x87");
  CHECK(normalized(R"({"type": "Strip"})", " \xff ") == "\xff");
  CHECK(normalized(R"({"type": "BertNormalizer"})", "A\xff\xe2\x82Z") == "az");
}

TEST_CASE("components: scores round as the reference's reader rounds them") {
  CHECK(tokenizer_json::read_score("-2.5") == -2.5);
  CHECK(tokenizer_json::read_score("0") == 0);
  CHECK(tokenizer_json::read_score("-1.25e2") == -125);
  CHECK(tokenizer_json::read_score("5E-1") == 0.5);
  CHECK(tokenizer_json::read_score("1e-400") == 0);
  CHECK(tokenizer_json::read_score("123456789012345678901234567890") > 1.2e29);
  CHECK(tokenizer_json::read_score("0.00000000000000000000000000000012345") < 1.3e-31);
  std::mt19937 random(5);
  for (int i = 0; i < 2000; ++i) {
    const double score =
        -std::ldexp(static_cast<double>(random()) + static_cast<double>(random()) / 4294967296.0,
                    -static_cast<int>(random() % 40));
    const double read = tokenizer_json::read_score(tokenizer_json::write_score(score));
    CHECK(tokenizer_json::read_score(tokenizer_json::write_score(read)) == read);
  }
}

TEST_CASE("components: damaged character maps are errors or match nothing outside themselves") {
  std::mt19937 random(9);
  for (int round = 0; round < 2000; ++round) {
    std::string bytes;
    const uint32_t units = 1 + random() % 64;
    for (uint32_t value : {units * 4}) bytes.append(reinterpret_cast<const char*>(&value), 4);
    for (uint32_t i = 0; i < units * 4 + random() % 32; ++i) bytes.push_back(static_cast<char>(random()));
    const CharsMap map = test::value_of(CharsMap::make(bytes));
    std::string text;
    for (int i = 0; i < 16; ++i) text.push_back(static_cast<char>(random()));
    const auto match = map.longest(text);
    if (match) CHECK(match->length <= text.size());
    if (match) CHECK(match->target.size() < bytes.size());
  }
  CHECK_FALSE(CharsMap::make("\x04"));
  CHECK_FALSE(CharsMap::make(std::string_view("\x05\0\0\0abcde", 9)));
  CHECK_FALSE(CharsMap::make(std::string_view("\x08\0\0\0abcd", 8)));
}
