#pragma once
// The tiny models of every family, converted and run, for the tests of conversion.
#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <set>
#include <string>
#include <vector>

#include "engine/convert.h"
#include "formats/rdrr/rdrr.h"
#include "model/runner.h"
#include "support/files.h"

namespace doppler::test {

namespace fs = std::filesystem;

inline fs::path tiny(const std::string& family) { return fs::path(DOPPLER_TINY_DIR) / "seed-9" / family; }

inline std::vector<std::string> all_families() {
  std::vector<std::string> names;
  for (const auto& entry : fs::directory_iterator(tiny("")))
    names.push_back(entry.path().filename().string());
  std::sort(names.begin(), names.end());
  REQUIRE(names.size() == 16);
  return names;
}

inline nlohmann::json expected_of(const std::string& family) {
  std::ifstream file(tiny(family) / "expected.json");
  return nlohmann::json::parse(file);
}

inline std::vector<float> logits_of(const std::string& path, const std::vector<int32_t>& prompt) {
  Runner runner(path, Precision::kExact, KvType::kF32, 256);
  std::vector<float> logits(prompt.size() * runner.vocab());
  const auto done = runner.executor().forward(runner.kv(), prompt, LogitRows::kAll, logits);
  REQUIRE_MESSAGE(done.has_value(), (done ? "" : done.error().message));
  return logits;
}

inline double largest_difference(const std::vector<float>& got, const nlohmann::json& rows) {
  double largest = 0;
  size_t i = 0;
  for (const auto& row : rows)
    for (const double wanted : row) largest = std::max(largest, std::abs(got.at(i++) - wanted));
  return largest;
}

inline ConvertReport converted(const std::string& from, const std::string& to,
                               const std::string& quant = "keep", bool requantize = false) {
  ConvertOptions options;
  options.quant = quant;
  options.requantize = requantize;
  options.shard_size_bytes = 100'000;  // tensors cross shards
  const auto report = convert(from, to, options);
  REQUIRE_MESSAGE(report.has_value(), (report ? "" : report.error().message));
  return *report;
}

inline void check_groups(const std::string& path, const model::ModelConfig& config) {
  const auto directory = rdrr::RdrrModel::open(path);
  REQUIRE_MESSAGE(directory.has_value(), (directory ? "" : directory.error().message));
  const rdrr::Manifest& manifest = (*directory)->manifest();
  std::set<std::string> groups;
  for (const rdrr::Group& group : manifest.groups) {
    CHECK_FALSE(group.shards.empty());
    groups.insert(group.id);
  }
  REQUIRE(manifest.moe.has_value() == (config.experts > 0));
  if (config.experts == 0) return;
  CHECK(manifest.moe->experts == config.experts);
  CHECK(manifest.moe->experts_per_token == config.experts_per_token);
  CHECK(manifest.moe->expert_format == (config.family == model::Family::kGptOss ? "gpt-oss" : "mixtral"));
  for (uint32_t layer = 0; layer < config.layers; ++layer) {
    CHECK(groups.contains("layer." + std::to_string(layer) + ".shared"));
    for (uint32_t e = 0; e < config.experts; ++e)
      CHECK(groups.contains("layer." + std::to_string(layer) + ".expert." + std::to_string(e)));
  }
}

}  // namespace doppler::test
