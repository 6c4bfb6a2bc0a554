#pragma once
// A tiny model of a family against transformers' numbers, and the folders of all that are at hand.
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <map>
#include <set>

#include "model_files.h"
#include "runner.h"

namespace doppler::test {

namespace fs = std::filesystem;

inline nlohmann::json expected_of(const fs::path& folder) {
  std::ifstream file(folder / "expected.json");
  REQUIRE_MESSAGE(file.good(), "not unpacked: " << folder.string());
  return nlohmann::json::parse(file);
}

// Greedy ids are compared up to the first step that a rounding error could turn.
inline size_t certain_steps(const nlohmann::json& expected) {
  size_t steps = 0;
  for (const double margin : expected["greedy_margins"]) {
    if (margin < 0.01) break;
    ++steps;
  }
  return steps;
}

inline double largest_difference(std::span<const float> got, const nlohmann::json& wanted) {
  REQUIRE(got.size() == wanted.size());
  double largest = 0;
  for (size_t i = 0; i < got.size(); ++i)
    largest = std::max(largest, std::abs(got[i] - wanted[i].get<double>()));
  return largest;
}

// |got - wanted| / |wanted|
inline double relative_error(std::span<const float> got, const nlohmann::json& wanted) {
  REQUIRE(got.size() == wanted.size());
  double difference = 0, norm = 0;
  for (size_t i = 0; i < got.size(); ++i) {
    const double w = wanted[i];
    difference += (got[i] - w) * (got[i] - w);
    norm += w * w;
  }
  return std::sqrt(difference / norm);
}

// The step whose value transformers calls hidden state `index`: the embedding, each layer but the last, the
// final norm.
inline std::map<std::string, size_t> hidden_steps(const Runner& runner, size_t count) {
  const bool positions = runner.model().config.learned_positions;
  std::map<std::string, size_t> steps{{positions ? "-1/positions" : "-1/embed", 0},
                                      {"-1/final_norm", count - 1}};
  for (size_t layer = 0; layer + 2 < count; ++layer) steps[std::to_string(layer) + "/layer_out"] = layer + 1;
  return steps;
}

/// Logits of every prompt position, hidden states of each layer at the last one, and greedy ids. `device`:
/// nullptr for the CPU.
inline void check_family(const fs::path& folder, const std::shared_ptr<gpu::Device>& device = nullptr) {
  CAPTURE(folder.string());
  const nlohmann::json expected = expected_of(folder);
  const auto prompt = expected["prompt_ids"].get<std::vector<int32_t>>();
  Runner runner(folder.string(), Precision::kExact, KvType::kF32, 256, device);

  const nlohmann::json& hidden = expected["last_hidden"];
  const std::map<std::string, size_t> steps = hidden_steps(runner, hidden.size());
  std::set<size_t> seen;
  runner.executor().set_tap([&](const Tap& tap) {
    const auto step = steps.find(std::to_string(tap.layer) + "/" + std::string(tap.name));
    if (step == steps.end()) return;
    seen.insert(step->second);
    const double error = relative_error(tap.data.last(tap.width), hidden[step->second]);
    CAPTURE(step->first);
    CHECK(error < 2e-3);
  });
  std::vector<float> logits(prompt.size() * runner.vocab());
  const auto done = runner.executor().forward(runner.kv(), prompt, LogitRows::kAll, logits);
  REQUIRE_MESSAGE(done.has_value(), (done ? "" : done.error().message));
  runner.executor().set_tap(nullptr);
  CHECK(seen.size() == hidden.size());

  double logit_error = 0;
  for (size_t i = 0; i < prompt.size(); ++i)
    logit_error = std::max(logit_error,
                           largest_difference(std::span(logits).subspan(i * runner.vocab(), runner.vocab()),
                                              expected["logits"][i]));
  CHECK(logit_error < 2e-3);

  const auto wanted = expected["greedy_ids"].get<std::vector<int32_t>>();
  const size_t certain = certain_steps(expected);
  for (const size_t chunk : {size_t{512}, size_t{3}}) {
    CAPTURE(chunk);
    const std::vector<int32_t> got = runner.greedy(prompt, wanted.size(), chunk);
    const size_t compared = std::min(certain, got.size());
    CHECK(std::equal(got.begin(), got.begin() + static_cast<std::ptrdiff_t>(compared), wanted.begin()));
    if (got.size() < wanted.size() && got.size() < certain) CHECK(got.back() == 1);  // ended as the file says
  }
}

/// The folders of one seed's families ("seed-9"), sorted. DOPPLER_TINY_MODELS names a directory to take the
/// seeds from instead of those in the repository, which holds a part of seed-25 alone.
inline std::vector<fs::path> families_of(const std::string& seed) {
  const char* other = std::getenv("DOPPLER_TINY_MODELS");
  const fs::path root = other != nullptr && *other != '\0' ? other : DOPPLER_TINY_DIR;
  std::vector<fs::path> folders;
  for (const auto& entry : fs::directory_iterator(root / seed)) folders.push_back(entry.path());
  std::sort(folders.begin(), folders.end());
  return folders;
}

}  // namespace doppler::test
