// Embeddings through the public interface: the catalogue's MiniLM against transformers, and decoder
// embedders.
#include <doctest/doctest.h>

#include <cmath>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <set>

#include "doppler/doppler.h"
#include "engine/convert.h"
#include "support/files.h"
#include "support/models.h"
#include "support/tiny_llama.h"

namespace doppler::test {
namespace {

namespace fs = std::filesystem;

Model load(const std::string& path, const LoadOptions& options) {
  auto model = Model::load(path, options);
  REQUIRE_MESSAGE(model.has_value(), (model ? "" : model.error().message));
  return *model;
}

LoadOptions on_cpu(Precision precision = Precision::kExact) {
  LoadOptions options;
  options.device = "cpu";
  options.precision = precision;
  return options;
}

double cosine(const std::vector<float>& a, const nlohmann::json& b) {
  REQUIRE(a.size() == b.size());
  double dot = 0, aa = 0, bb = 0;
  for (size_t i = 0; i < a.size(); ++i) {
    const double x = a[i], y = b[i];
    dot += x * y;
    aa += x * x;
    bb += y * y;
  }
  return dot / std::sqrt(aa * bb);
}

double length(const std::vector<float>& a) {
  double sum = 0;
  for (const float x : a) sum += double{x} * x;
  return std::sqrt(sum);
}

void check_references(const Model& model, double least_cosine) {
  std::ifstream file(DOPPLER_GOLDEN_DIR "/embedding-minilm.json");
  const nlohmann::json references = nlohmann::json::parse(file)["refs"];
  REQUIRE(references.size() == 12);
  CHECK(model.info().embedding_width == 384);
  CHECK(model.info().max_text_ids == 256);
  for (const auto& reference : references) {
    CAPTURE(reference["text"].dump());
    const auto embedding = model.embed(reference["text"].get<std::string>());
    REQUIRE_MESSAGE(embedding.has_value(), (embedding ? "" : embedding.error().message));
    CHECK(embedding->ids == reference["ids"].get<std::vector<int32_t>>());
    CHECK(cosine(embedding->values, reference["embedding"]) > least_cosine);
    CHECK(length(embedding->values) == doctest::Approx(1).epsilon(1e-5));
    CHECK(embedding->truncated == (embedding->ids.size() == 256));
  }
}

TEST_CASE("all-minilm-l6-v2 gives transformers' ids and vectors on the CPU") {
  check_references(load(model_path("all-minilm-l6-v2"), on_cpu()), 0.9999);
  check_references(load(model_path("all-minilm-l6-v2"), on_cpu(Precision::kFast)), 0.999);
}

TEST_CASE("all-minilm-l6-v2 gives transformers' ids and vectors on lavapipe") {
  for (const Precision precision : {Precision::kExact, Precision::kFast}) {
    LoadOptions options = on_cpu(precision);
    options.device = "lavapipe";
    check_references(load(model_path("all-minilm-l6-v2"), options),
                     precision == Precision::kExact ? 0.9999 : 0.999);
  }
}

TEST_CASE("all-minilm-l6-v2 as RDRR: F32 kept and F16, and Q8_0 close") {
  const TempDir folder;
  struct Case {
    const char* quant;
    double least_cosine;
  };
  for (const Case one : {Case{"keep", 0.9999}, {"f16", 0.9999}, {"q8_0", 0.999}}) {
    CAPTURE(one.quant);
    ConvertOptions options;
    options.quant = one.quant;
    const auto report = convert(model_path("all-minilm-l6-v2"), folder.file(one.quant), options);
    REQUIRE_MESSAGE(report.has_value(), (report ? "" : report.error().message));
    check_references(load(folder.file(one.quant), on_cpu()), one.least_cosine);
  }
}

TEST_CASE("the empty text is valid, and a text that is too long keeps its last token") {
  const Model model = load(model_path("all-minilm-l6-v2"), on_cpu());
  const Embedding empty = model.embed("").value();
  CHECK(empty.ids == std::vector<int32_t>{101, 102});
  CHECK_FALSE(empty.truncated);
  CHECK(length(empty.values) == doctest::Approx(1));

  std::string words;
  for (int i = 0; i < 253; ++i) words += "word ";
  CHECK_FALSE(model.embed(words + "word").value().truncated);  // 254 and the two that are added
  const Embedding cut = model.embed(words + "word and more").value();
  CHECK(cut.truncated);
  CHECK(cut.ids.size() == 256);
  CHECK(cut.ids.back() == 102);
  CHECK(cut.values == model.embed(words + "word").value().values);

  LoadOptions shorter = on_cpu();
  shorter.max_chunk = 8;
  CHECK(
      load(model_path("all-minilm-l6-v2"), shorter).embed("one two three four five six seven").value().ids ==
      std::vector<int32_t>{101, 2028, 2048, 2093, 2176, 2274, 2416, 102});
}

TEST_CASE("ids go in as they are, and wrong ones are refused") {
  const Model model = load(model_path("all-minilm-l6-v2"), on_cpu());
  const Embedding whole = model.embed("hello").value();
  CHECK(model.embed(std::span<const int32_t>(whole.ids)).value() == whole.values);
  for (const std::vector<int32_t>& wrong :
       {std::vector<int32_t>{}, {101, -1}, {101, 30522}, std::vector<int32_t>(257, 5)}) {
    const auto result = model.embed(std::span<const int32_t>(wrong));
    REQUIRE_FALSE(result.has_value());
    CHECK(result.error().code == ErrorCode::kBadInput);
  }
  CHECK(model.embed(std::span<const int32_t>(whole.ids)).value() == whole.values);  // it goes on
}

// A tiny decoder with the files of sentence-transformers.
void make_decoder_embedder(const fs::path& folder, const char* pooling) {
  fs::copy(fs::path(DOPPLER_TINY_DIR) / "seed-9/qwen3", folder, fs::copy_options::recursive);
  fs::create_directories(folder / "pool");
  write_text((folder / "modules.json").string(),
             R"([{"idx": 0, "name": "0", "path": "", "type": "sentence_transformers.models.Transformer"},
                 {"idx": 1, "name": "1", "path": "pool", "type": "sentence_transformers.models.Pooling"},
                 {"idx": 2, "name": "2", "path": "2", "type": "sentence_transformers.models.Normalize"}])");
  write_text((folder / "pool/config.json").string(), "{\"" + std::string(pooling) + "\": true}");
}

TEST_CASE("a decoder embedder: straight from its folder and as RDRR the same vectors") {
  for (const char* pooling :
       {"pooling_mode_mean_tokens", "pooling_mode_lasttoken", "pooling_mode_cls_token"}) {
    CAPTURE(pooling);
    const TempDir folder;
    make_decoder_embedder(folder.path() / "m", pooling);
    REQUIRE(convert(folder.file("m"), folder.file("r"), {}).has_value());
    const Model model = load(folder.file("m"), on_cpu()), rdrr = load(folder.file("r"), on_cpu());
    CHECK(model.info().embedding_width == 48);
    CHECK(model.info().max_text_ids == 256);
    std::set<std::vector<float>> seen;
    for (const char* text : {"a", "hello world", "a longer text, of some words"}) {
      const Embedding one = model.embed(text).value(), other = rdrr.embed(text).value();
      CHECK(length(one.values) == doctest::Approx(1));
      CHECK(one.ids == other.ids);
      CHECK(one.values == other.values);
      seen.insert(one.values);
    }
    if (std::string_view(pooling) != "pooling_mode_cls_token") CHECK(seen.size() == 3);
  }
}

TEST_CASE("an embedder does not generate and a generator does not embed") {
  const Model embedder = load(model_path("all-minilm-l6-v2"), on_cpu());
  const auto session = embedder.new_session();
  REQUIRE_FALSE(session.has_value());
  CHECK(session.error().message.find("use `doppler embed`") != std::string::npos);

  const TempDir folder;
  tiny_llama_gguf(folder.file("tiny.gguf"));
  const Model generator = load(folder.file("tiny.gguf"), on_cpu());
  CHECK(generator.info().embedding_width == 0);
  const auto embedding = generator.embed("hello");
  REQUIRE_FALSE(embedding.has_value());
  CHECK(embedding.error().message.find("use `doppler run`") != std::string::npos);
}

}  // namespace
}  // namespace doppler::test
