// Malformed GGUF files: one clear line each, never a crash.
#include <doctest/doctest.h>

#include <algorithm>
#include <filesystem>
#include <map>
#include <random>
#include <set>

#include "formats/gguf/gguf.h"
#include "support/files.h"
#include "support/gguf_faults.h"
#include "support/tiny_llama.h"

using namespace doppler;
using gguf::GgufFile;

namespace {

Result<std::unique_ptr<GgufFile>> open_bytes(std::vector<std::byte> bytes) {
  return GgufFile::open(memory_source("x.gguf", std::move(bytes)));
}

void check_message(const Error& error) {
  CAPTURE(error.message);
  CHECK(error.message.starts_with("["));
  CHECK(error.message.size() < 400);
  CHECK(std::all_of(error.message.begin(), error.message.end(), [](char c) { return c >= ' ' && c < 0x7f; }));
}

/// Reads all that can be read, as a loader would: sanitizers see any step outside the file.
unsigned touch(const GgufFile& file) {
  unsigned sum = 0;
  for (const TensorInfo& t : file.tensors())
    if (const auto bytes = file.bytes(t))
      for (size_t i = 0; i < bytes->data.size(); i += 61) sum += std::to_integer<unsigned>(bytes->data[i]);
  for (const auto& [key, value] : file.metadata()) {
    sum += file.get_uint(key).has_value() + file.get_float(key).has_value() + file.get_bool(key).has_value();
    if (const auto ints = file.get_ints(key)) sum += static_cast<unsigned>(ints->size());
    if (const auto floats = file.get_floats(key)) sum += static_cast<unsigned>(floats->size());
    if (const auto text = file.get_string(key); text && *text)
      for (const char c : **text) sum += static_cast<unsigned char>(c);
    if (const auto array = file.get_array(key, gguf::ValueType::kString); array && *array != nullptr)
      for (const std::string_view text : (*array)->strings)
        if (!text.empty()) sum += static_cast<unsigned char>(text.back());
  }
  return sum;
}

// Faults of bad-gguf whose container is valid: the model's configuration or tokenizer refuses them.
const std::set<std::string> kModelFaults{
    "block-count-100000", "bos-out-of-range", "head-count-0",        "no-arch",
    "no-vocab",           "scores-u8",        "tokens-vs-scores-len"};

}  // namespace

TEST_CASE("hand-made malformed files") {
  size_t seen = 0;
  for (const auto& entry : std::filesystem::directory_iterator(DOPPLER_GOLDEN_DIR "/bad-gguf")) {
    CAPTURE(entry.path().string());
    const auto file = GgufFile::open(entry.path().string());
    CHECK(file.has_value() == kModelFaults.contains(entry.path().stem().string()));
    if (file.has_value())
      touch(**file);
    else
      check_message(file.error());
    ++seen;
  }
  CHECK(seen == 31);
}

TEST_CASE("the same faults inside a valid model") {
  REQUIRE(open_bytes(test::tiny_llama().bytes()).has_value());
  std::set<std::string> names;
  for (const test::Fault& fault : test::gguf_faults()) {
    CAPTURE(fault.name);
    CHECK(names.insert(fault.name).second);
    const auto file = open_bytes(fault.bytes);
    CHECK(file.has_value() == !fault.container);
    if (file.has_value())
      touch(**file);
    else
      check_message(file.error());
  }
  for (const auto& entry : std::filesystem::directory_iterator(DOPPLER_GOLDEN_DIR "/bad-gguf")) {
    CAPTURE(entry.path().string());
    CHECK(names.contains(entry.path().stem().string()));
  }
}

TEST_CASE("errors say what is wrong") {
  const std::map<std::string, std::pair<ErrorCode, std::string>> wanted{
      {"bad-magic", {ErrorCode::kBadFile, "not a GGUF file: it starts with \"GGML\""}},
      {"big-endian", {ErrorCode::kUnsupported, "the file is big-endian"}},
      {"version-1", {ErrorCode::kUnsupported, "version 2 or 3 wanted, got 1"}},
      {"split-2", {ErrorCode::kUnsupported, "split.count is 2"}},
      {"nested-array", {ErrorCode::kUnsupported, "a is an array of arrays"}},
      {"dup-key", {ErrorCode::kBadFile, "\"general.architecture\" stands twice"}},
      {"alignment-3", {ErrorCode::kBadFile, "general.alignment should be a power of two"}},
      {"type-out-of-range", {ErrorCode::kUnsupported, "tensor \"blk.0.attn_q.weight\" has ggml type 999"}},
      {"dims-overflow", {ErrorCode::kBadFile, "has more elements than"}},
      {"overlap", {ErrorCode::kBadFile, "overlap at offset"}},
      {"offset-unaligned", {ErrorCode::kBadFile, "not a multiple of the alignment 32"}},
      {"string-1GiB-short-file", {ErrorCode::kBadFile, "1 metadata entries cannot fit in 9 bytes"}},
      {"key-1GiB", {ErrorCode::kBadFile, "a metadata key wants 1073741824 bytes"}},
      {"data-cut-short", {ErrorCode::kBadFile, "cut short"}},
  };
  size_t seen = 0;
  for (const test::Fault& fault : test::gguf_faults()) {
    const auto found = wanted.find(fault.name);
    if (found == wanted.end()) continue;
    const auto file = open_bytes(fault.bytes);
    REQUIRE_FALSE(file.has_value());
    CAPTURE(file.error().message);
    CHECK(file.error().code == found->second.first);
    CHECK(file.error().message.find(found->second.second) != std::string::npos);
    ++seen;
  }
  CHECK(seen == wanted.size());
}

TEST_CASE("a file cut at any boundary is refused") {
  const auto g = test::tiny_llama({.layers = 1});
  std::vector<size_t> boundaries;
  const auto bytes = g.bytes(&boundaries);
  const size_t needed = bytes.size();  // the last tensor's size is a multiple of the alignment
  size_t cuts = 0;
  for (const size_t boundary : boundaries)
    for (const size_t cut : {boundary - 1, boundary, boundary + 1}) {
      if (cut >= needed) continue;
      CAPTURE(cut);
      const auto file = open_bytes({bytes.begin(), bytes.begin() + static_cast<std::ptrdiff_t>(cut)});
      CHECK_FALSE(file.has_value());
      if (!file.has_value()) check_message(file.error());
      ++cuts;
    }
  CHECK(cuts > 300);
}

TEST_CASE("random damage never leads outside the file") {
  const auto valid = test::tiny_llama({.layers = 1}).bytes();
  std::vector<size_t> boundaries;
  test::tiny_llama({.layers = 1}).bytes(&boundaries);
  const size_t table_end = boundaries[boundaries.size() - test::tiny_llama({.layers = 1}).tensors.size() - 2];
  std::mt19937 random(20240607);
  unsigned opened = 0, refused = 0, sum = 0;
  for (int round = 0; round < 2000; ++round) {
    auto bytes = valid;
    // Mostly where structure lies: at a boundary's next byte, or anywhere before the data.
    for (uint32_t flips = 1 + random() % 4; flips > 0; --flips) {
      const size_t at =
          random() % 2 == 0 ? boundaries[random() % boundaries.size()] + random() % 8 : random() % table_end;
      if (at < bytes.size()) bytes[at] ^= static_cast<std::byte>(1u << random() % 8);
    }
    if (random() % 8 == 0) bytes.resize(random() % bytes.size());
    const auto file = open_bytes(std::move(bytes));
    if (file.has_value()) {
      ++opened;
      sum += touch(**file);
    } else {
      ++refused;
      check_message(file.error());
    }
  }
  CAPTURE(sum);
  CHECK(opened > 100);  // else the damage is too crude to reach the later checks
  CHECK(refused > 500);
}
