#include "engine/inspect.h"

#include <doctest/doctest.h>

#include <cstdlib>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "formats/rdrr/rdrr_files.h"

using namespace doppler;
using namespace doppler::test;

TEST_CASE("inspect tells what an RDRR directory holds") {
  const auto report = inspect(golden_rdrr("gemma3-q4k"));
  REQUIRE_MESSAGE(report, (report ? "" : report.error().message));
  CHECK(report->format == "rdrr");
  CHECK(report->quantization == "Q4_K_M");
  CHECK(report->shards == 1);
  CHECK(report->chat_template == "gemma");
  REQUIRE(report->config);
  CHECK(report->config->layers == 7);
  CHECK(report->config->sliding == std::vector<bool>{true, true, true, true, true, false, true});
  CHECK(report->config->norm_weight_offset == 1);
  CHECK(report->config->attention_scale == doctest::Approx(1 / std::sqrt(48.0)));
  uint64_t bytes = 0;
  for (const DtypeUse& use : report->dtypes) bytes += use.bytes;
  CHECK(bytes == report->tensor_bytes);
  const auto json = nlohmann::json::parse(to_json(*report, true));
  CHECK(json["tensors"].size() == report->tensors.size());
  CHECK(json["config"]["family"] == "gemma3");
  CHECK(json["dtypes"][0]["dtype"] == "Q4_K");
  CHECK(to_text(*report, false).find("Q4_K") != std::string::npos);
}

TEST_CASE("an early manifest's attention scalar of sqrt(head size) means the head size") {
  TemporaryDirectory temporary;
  copy_model(golden_rdrr("llama-f16"), temporary / "m");
  std::string manifest = slurp(temporary / "m/manifest.json");
  replace_once(manifest, "\"queryPreAttnScalar\": 24", "\"queryPreAttnScalar\": 4.898979485566356");
  spill(temporary / "m/manifest.json", manifest);
  const auto report = inspect(temporary / "m");
  REQUIRE(report);
  REQUIRE(report->config);
  CHECK(report->config->attention_scale == doctest::Approx(1 / std::sqrt(24.0)));
}

TEST_CASE("inspect accepts a valid container of a family that does not run") {
  TemporaryDirectory temporary;
  copy_model(golden_rdrr("mixtral-early"), temporary / "m");
  std::string manifest = slurp(temporary / "m/manifest.json");
  replace_once(manifest, "\"expertFormat\": \"mixtral\"", "\"expertFormat\": \"gpt-oss\"");
  spill(temporary / "m/manifest.json", manifest);
  const auto report = inspect(temporary / "m");
  REQUIRE(report);
  CHECK_FALSE(report->config);
  CHECK(report->not_runnable.find("mixture of experts (gpt-oss)") != std::string::npos);
  CHECK(nlohmann::json::parse(to_json(*report, false))["runs"] == false);
}

TEST_CASE("inspect tells what a Hugging Face folder holds, with or without a tokenizer") {
  TemporaryDirectory temporary;
  copy_model(std::string(DOPPLER_TINY_DIR) + "/seed-9/mixtral", temporary / "m");
  for (const bool tokenizer : {true, false}) {
    if (!tokenizer) std::filesystem::remove(temporary / "m/tokenizer.json");
    const auto report = inspect(temporary / "m");
    REQUIRE_MESSAGE(report, (report ? "" : report.error().message));
    CHECK(report->format == "safetensors");
    REQUIRE(report->config);
    const auto json = nlohmann::json::parse(to_json(*report, false));
    CHECK(json["config"]["family"] == "mixtral");
    CHECK(json["config"]["experts"] == 8);
    CHECK(json["config"]["embedder"] == false);
    CHECK(json["dtypes"][0]["dtype"] == "BF16");
    CHECK(json["tokenizer"]["tokens"] == (tokenizer ? 384 : 0));
    CHECK(to_text(*report, false).find("safetensors") != std::string::npos);
  }
}

TEST_CASE("inspect refuses what is no model") {
  CHECK(inspect("/nonexistent").error().code == ErrorCode::kNotFound);
  CHECK(inspect(DOPPLER_GOLDEN_DIR).error().code == ErrorCode::kBadInput);
}
