#pragma once
// Where tests find the real models and the golden files.
#include <doctest/doctest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <string>

namespace doppler::test {

inline std::string golden(const std::string& name) { return std::string(DOPPLER_GOLDEN_DIR) + "/" + name; }

inline nlohmann::json golden_json(const std::string& name) {
  std::ifstream file(golden(name));
  REQUIRE_MESSAGE(file.good(), "golden file missing: ", golden(name));
  return nlohmann::json::parse(file);
}

/// DOPPLER_MODELS, or the cache that `doppler pull` fills.
inline std::string model_path(const std::string& file_name) {
  const auto env = [](const char* name) { return std::string(std::getenv(name) ? std::getenv(name) : ""); };
  std::string folder = env("DOPPLER_MODELS");
  if (folder.empty()) {
    const std::string cache = env("XDG_CACHE_HOME");
    folder = (cache.empty() ? env("HOME") + "/.cache" : cache) + "/doppler/models";
  }
  const std::string path = folder + "/" + file_name;
  REQUIRE_MESSAGE(std::filesystem::exists(path), path, " is missing: run `make models`, or set DOPPLER_MODELS");
  return path;
}

inline std::string gemma() { return model_path("gemma-3-270m-q4_k_m.gguf"); }
inline std::string smollm2() { return model_path("SmolLM2-135M-Instruct.Q4_1.gguf"); }

}  // namespace doppler::test
