#pragma once
// Small vocabularies and golden files for the tokenizer tests.
#include <doctest/doctest.h>

#include <fstream>
#include <memory>
#include <nlohmann/json.hpp>
#include <random>
#include <sstream>
#include <string>
#include <vector>

#include "tokenizer/tokenizer.h"

namespace doppler::test {

inline std::string read_golden(const std::string& name) {
  std::ifstream file(std::string(DOPPLER_GOLDEN_DIR) + "/" + name, std::ios::binary);
  REQUIRE_MESSAGE(file, name << " is missing from tests/golden");
  std::ostringstream text;
  text << file.rdbuf();
  return text.str();
}

inline nlohmann::json golden_json(const std::string& name) {
  return nlohmann::json::parse(read_golden(name));
}

template <class T>
T value_of(Result<T> result) {
  REQUIRE_MESSAGE(result, (result ? "" : result.error().message));
  return std::move(*result);
}

inline std::unique_ptr<Tokenizer> tokenizer_of(Result<VocabData> vocab) {
  return value_of(make_tokenizer(value_of(std::move(vocab))));
}

/// What a GGUF file of model "llama" would hold: <unk>, <s>, </s>, the 256 byte tokens, then `pieces` with
/// falling scores.
struct ScoredVocab {
  std::vector<std::string> texts;
  std::vector<std::string_view> tokens;
  std::vector<float> scores;
  std::vector<int64_t> types;
  GgufVocabView view;

  explicit ScoredVocab(const std::vector<std::string>& pieces) {
    const auto add = [&](std::string text, float score, TokenType type) {
      texts.push_back(std::move(text));
      scores.push_back(score);
      types.push_back(static_cast<int64_t>(type));
    };
    add("<unk>", 0, TokenType::kUnknown);
    add("<s>", 0, TokenType::kControl);
    add("</s>", 0, TokenType::kControl);
    const char* digits = "0123456789ABCDEF";
    for (int b = 0; b < 256; ++b)
      add(std::string("<0x") + digits[b / 16] + digits[b % 16] + ">", 0, TokenType::kByte);
    float score = -1;
    for (const std::string& piece : pieces) add(piece, score--, TokenType::kNormal);
    refresh();
    view.model = "llama";
    view.unk = 0;
    view.bos = 1;
    view.eos = 2;
    view.add_space_prefix = false;
  }
  ScoredVocab(const ScoredVocab&) = delete;

  void refresh() {
    tokens.assign(texts.begin(), texts.end());
    view.tokens = tokens;
    view.scores = scores;
    view.types = types;
  }
};

inline std::vector<std::string> spellings(const Tokenizer& tokenizer, const std::vector<int32_t>& ids) {
  std::vector<std::string> out;
  for (const int32_t id : ids) out.emplace_back(tokenizer.token_text(id));
  return out;
}

/// Text of `length` code points from an alphabet.
inline std::string random_text(std::mt19937& random, const std::vector<std::string>& alphabet,
                               size_t length) {
  std::string out;
  for (size_t i = 0; i < length; ++i) out += alphabet[random() % alphabet.size()];
  return out;
}

}  // namespace doppler::test
