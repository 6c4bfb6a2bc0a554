#pragma once
// The real models and the golden files, by name.
#include <doctest/doctest.h>

#include <fstream>
#include <nlohmann/json.hpp>
#include <string>

#include "support/models.h"

namespace doppler::test {

inline std::string golden(const std::string& name) { return std::string(DOPPLER_GOLDEN_DIR) + "/" + name; }

inline nlohmann::json golden_json(const std::string& name) {
  std::ifstream file(golden(name));
  REQUIRE_MESSAGE(file.good(), "golden file missing: " << golden(name));
  return nlohmann::json::parse(file);
}

inline std::string gemma() { return model_path("gemma-3-270m-q4_k_m.gguf"); }
inline std::string smollm2() { return model_path("SmolLM2-135M-Instruct.Q4_1.gguf"); }

}  // namespace doppler::test
