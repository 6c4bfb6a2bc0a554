// The two real models against two independent implementations: references of llama.cpp (with and without
// special text, with BOS, and back to text) and random strings tokenised by Hugging Face tokenizers.
#include <fstream>

#include "support/models.h"
#include "tokenizer/gguf_vocab.h"
#include "tokenizer/support.h"

using namespace doppler;
using nlohmann::json;

namespace {

std::string from_hex(const std::string& hex) {
  std::string out;
  for (size_t i = 0; i + 1 < hex.size(); i += 2)
    out.push_back(static_cast<char>(std::stoi(hex.substr(i, 2), nullptr, 16)));
  return out;
}

void check_references(const Tokenizer& tokenizer, const std::string& name) {
  using Ids = std::vector<int32_t>;
  const json file = test::golden_json("tokenizer/" + name + "-references.json");
  REQUIRE(file["refs"].size() == 70);
  for (const json& ref : file["refs"]) {
    const std::string text = from_hex(ref["utf8_hex"].get<std::string>());
    CAPTURE(text);
    const Ids ids = ref["ids"].get<Ids>();
    CHECK(tokenizer.encode(text, {.parse_special = true}) == ids);
    CHECK(tokenizer.encode(text) == ref["ids_noparse"].get<Ids>());
    CHECK(tokenizer.encode(text, {.bos = BosRule::kModel, .parse_special = true}) ==
          ref["ids_bos"].get<Ids>());
    CHECK(tokenizer.decode(ids) == ref["detok"].get<std::string>());
    StreamDecoder stream(tokenizer);
    std::string streamed;
    for (const int32_t id : ids) streamed += stream.push(id);
    CHECK(streamed + stream.finish() == ref["detok"].get<std::string>());
  }
}

void check_sample(const Tokenizer& tokenizer, const std::string& name) {
  const json sample = test::golden_json("tokenizer/" + name + "-sample.json");
  REQUIRE(sample.size() == 300);
  for (const json& item : sample) {
    const auto text = item["text"].get<std::string>();
    CAPTURE(text);
    CHECK(tokenizer.encode(text) == item["ids"].get<std::vector<int32_t>>());
  }
}

// From the GGUF file, and from the tokenizer.json that a converted model holds.
void check_model(const std::string& file, const std::string& name) {
  const auto from_gguf = test::tokenizer_of(test::read_gguf_vocab(test::model_path(file)));
  check_references(*from_gguf, name);
  check_sample(*from_gguf, name);
  const std::string written = to_tokenizer_json(from_gguf->vocab());
  const auto from_json = test::tokenizer_of(vocab_from_tokenizer_json(written));
  check_references(*from_json, name);
  check_sample(*from_json, name);
  CHECK(from_json->vocab_size() == from_gguf->vocab_size());
  CHECK(from_json->bos() == (from_gguf->vocab().add_bos ? from_gguf->bos() : std::nullopt));
  for (int32_t id = 0; id < from_gguf->vocab_size(); ++id) {
    if (from_json->token_bytes(id) == from_gguf->token_bytes(id)) continue;
    CAPTURE(id);
    CHECK(from_json->token_bytes(id) == from_gguf->token_bytes(id));
  }
}

}  // namespace

TEST_CASE("real models: Gemma 3, BPE by scores and by merges") {
  check_model("gemma-3-270m-q4_k_m.gguf", "gemma");
}

TEST_CASE("real models: SmolLM2, byte-level BPE") {
  check_model("SmolLM2-135M-Instruct.Q4_1.gguf", "smollm2");
}

TEST_CASE("real models: text that is not UTF-8 keeps its bytes") {
  const auto tokenizer =
      test::tokenizer_of(test::read_gguf_vocab(test::model_path("gemma-3-270m-q4_k_m.gguf")));
  std::mt19937 random(17);
  for (int round = 0; round < 300; ++round) {
    std::string text;
    for (size_t i = random() % 40; i > 0; --i) text.push_back(static_cast<char>(random()));
    CHECK(tokenizer->decode_bytes(tokenizer->encode(text)) == text);
  }
}
