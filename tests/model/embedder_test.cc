// Encoders and decoder embedders, on models made here: what one pass gives, and what is refused.
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>

#include "model_files.h"
#include "runner.h"
#include "support/files.h"

namespace doppler::test {
namespace {

namespace fs = std::filesystem;

// A folder that adds the files of sentence-transformers to a tiny decoder.
void make_embedder(const fs::path& folder, const char* mode) {
  fs::copy(fs::path(DOPPLER_TINY_DIR) / "seed-9/qwen3", folder, fs::copy_options::recursive);
  fs::create_directories(folder / "1_Pooling");
  fs::create_directories(folder / "2_Normalize");
  write_text((folder / "1_Pooling/config.json").string(), std::string("{\"") + mode + "\": true}");
}

TEST_CASE("decoder embedders: the last or the mean hidden state after the final norm, at length 1") {
  std::ifstream file(fs::path(DOPPLER_TINY_DIR) / "seed-9/qwen3/expected.json");
  const nlohmann::json expected = nlohmann::json::parse(file);
  const auto ids = expected["prompt_ids"].get<std::vector<int32_t>>();
  const auto last = expected["last_hidden"].back().get<std::vector<double>>();

  // The mean, from the decoder's own final norm over all rows.
  Runner decoder((fs::path(DOPPLER_TINY_DIR) / "seed-9/qwen3").string(), Precision::kExact, KvType::kF32,
                 256);
  std::vector<double> mean(last.size());
  decoder.executor().set_tap([&](const Tap& tap) {
    if (tap.name != "final_norm") return;
    for (uint32_t r = 0; r < tap.rows; ++r)
      for (uint32_t i = 0; i < tap.width; ++i) mean[i] += tap.data[r * tap.width + i];
  });
  std::vector<float> logits(ids.size() * decoder.vocab());
  REQUIRE(decoder.executor().forward(decoder.kv(), ids, LogitRows::kAll, logits).has_value());

  const std::shared_ptr<gpu::Device> lavapipe = take(gpu::Device::create({.name = "lavapipe"}));
  for (const int form : {0, 1, 2, 3}) {
    const bool of_mean = form % 2 == 1, on_gpu = form >= 2;
    CAPTURE(of_mean);
    CAPTURE(on_gpu);
    const TempDir temporary;
    const fs::path folder = temporary.path() / "m";
    make_embedder(folder, of_mean ? "pooling_mode_mean_tokens" : "pooling_mode_lasttoken");
    Runner runner(folder.string(), Precision::kExact, KvType::kF32, 256, on_gpu ? lavapipe : nullptr);
    CHECK(runner.model().graph.embedder);
    std::vector<float> embedding(last.size());
    REQUIRE(runner.executor().forward(runner.kv(), ids, LogitRows::kLast, embedding).has_value());
    const std::vector<double>& wanted = of_mean ? mean : last;
    double length = 0;
    for (const double x : wanted) length += x * x;
    for (size_t i = 0; i < wanted.size(); ++i)
      CHECK(embedding[i] == doctest::Approx(wanted[i] / std::sqrt(length)).epsilon(1e-4));

    // The text is over: what follows is another's.
    CHECK_FALSE(runner.executor().forward(runner.kv(), ids, LogitRows::kLast, embedding).has_value());
    runner.restart();
    std::vector<float> rows(ids.size() * embedding.size());
    CHECK_FALSE(runner.executor().forward(runner.kv(), ids, LogitRows::kAll, rows).has_value());
  }
}

TEST_CASE("a pooling of two kinds is refused") {
  const TempDir temporary;
  const fs::path folder = temporary.path() / "m";
  make_embedder(folder, "pooling_mode_mean_tokens\": true, \"pooling_mode_lasttoken");
  CHECK_FALSE(model::open_model(folder.string()).has_value());
}

}  // namespace
}  // namespace doppler::test
