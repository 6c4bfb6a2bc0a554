// The tiny models written as GGUF files, with the names and keys that llama.cpp's converter writes.
#include <array>
#include <filesystem>
#include <fstream>

#include "model_files.h"
#include "runner.h"
#include "support/files.h"
#include "tiny_gguf.h"

namespace doppler::test {
namespace {

namespace fs = std::filesystem;

void check_logits(const std::string& path, const fs::path& folder) {
  std::ifstream file(folder / "expected.json");
  const nlohmann::json expected = nlohmann::json::parse(file);
  const auto prompt = expected["prompt_ids"].get<std::vector<int32_t>>();
  Runner runner(path, Precision::kExact, KvType::kF32, 256);
  std::vector<float> logits(prompt.size() * runner.vocab());
  const auto done = runner.executor().forward(runner.kv(), prompt, LogitRows::kAll, logits);
  REQUIRE_MESSAGE(done.has_value(), (done ? "" : done.error().message));
  double largest = 0;
  size_t i = 0;
  for (const auto& row : expected["logits"])
    for (const double wanted : row) largest = std::max(largest, std::abs(logits[i++] - wanted));
  CHECK(largest < 2e-3);
}

TEST_CASE("gguf files of the families give transformers' logits") {
  const TempDir folder;
  for (const TinySource& source : tiny_sources()) {
    CAPTURE(source.folder);
    const fs::path from = fs::path(DOPPLER_TINY_DIR) / "seed-9" / source.folder;
    const std::string path = folder.file("m.gguf");
    TinyGguf(source, from).convert().write(path);
    check_logits(path, from);
  }
}

TEST_CASE("a gguf model split in three files is one model, and its faults are refused") {
  const TempDir folder;
  const TinySource source{"llama", "llama", kLlamaNames, true};
  const fs::path from = fs::path(DOPPLER_TINY_DIR) / "seed-9/llama";
  const GgufWriter whole = TinyGguf(source, from).convert();
  const auto name = [&](int i) { return folder.file("m-0000" + std::to_string(i) + "-of-00003.gguf"); };
  const auto write = [&](size_t tensors_stated) {
    for (uint16_t part = 0; part < 3; ++part) {
      GgufWriter piece;
      if (part == 0) piece.pairs = whole.pairs;
      piece.set("split.no", part);
      piece.set("split.count", uint16_t{3});
      piece.set("split.tensors.count", static_cast<int32_t>(tensors_stated));
      for (size_t i = 0; i < whole.tensors.size(); ++i)
        if (i * 3 / whole.tensors.size() == part) piece.tensors.push_back(whole.tensors[i]);
      piece.write(name(part + 1));
    }
  };
  write(whole.tensors.size());
  check_logits(name(1), from);
  CHECK_FALSE(model::open_model(name(2)).has_value());  // not the first
  fs::copy_file(name(1), name(3), fs::copy_options::overwrite_existing);
  CHECK_FALSE(model::open_model(name(1)).has_value());  // tensors twice
  fs::remove(name(3));
  CHECK_FALSE(model::open_model(name(1)).has_value());
  write(whole.tensors.size() + 1);
  CHECK_FALSE(model::open_model(name(1)).has_value());
}

}  // namespace
}  // namespace doppler::test
