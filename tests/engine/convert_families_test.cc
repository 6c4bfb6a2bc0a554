// The tiny models of every family, from Hugging Face folders, as RDRR.
#include <doctest/doctest.h>

#include <cstring>
#include <span>

#include "engine/tiny_rdrr.h"
#include "formats/rdrr/verify.h"
#include "formats/safetensors/safetensors.h"

namespace doppler::test {
namespace {

TEST_CASE("every family from its folder: verified, grouped, and bitwise the same logits") {
  for (const std::string& family : all_families()) {
    CAPTURE(family);
    const TempDir folder;
    const std::string out = folder.file("out");
    converted(tiny(family).string(), out);
    const auto verified = rdrr::verify(out, nullptr);
    REQUIRE(verified.has_value());
    CHECK_MESSAGE(verified->ok(), verified->summary());

    const auto prompt = expected_of(family)["prompt_ids"].get<std::vector<int32_t>>();
    CHECK(logits_of(out, prompt) == logits_of(tiny(family).string(), prompt));

    const auto a = model::open_model(tiny(family).string()), b = model::open_model(out);
    REQUIRE(b.has_value());
    check_groups(out, b->config);
    CHECK(b->config.family == a->config.family);
    CHECK(b->config.end_ids == a->config.end_ids);
    for (const graph::Weight& weight : b->graph.weights)
      CHECK(weight.storage != graph::Storage::kTransposed);  // nothing is turned when it is loaded

    // And once more, from one RDRR directory to another.
    const std::string again = folder.file("again");
    converted(out, again);
    CHECK(logits_of(again, prompt) == logits_of(out, prompt));
    CHECK(read_bytes(again + "/shard_00000.bin") == read_bytes(out + "/shard_00000.bin"));
    check_groups(again, b->config);
  }
}

TEST_CASE("every family as F32, F16 and BF16: transformers' logits") {
  for (const std::string& family : all_families()) {
    CAPTURE(family);
    const nlohmann::json expected = expected_of(family);
    const auto prompt = expected["prompt_ids"].get<std::vector<int32_t>>();
    for (const char* quant : {"f32", "f16", "bf16"}) {
      CAPTURE(quant);
      // A narrower type than the source's rounds: F32 to 16 bits, F16 to BF16.
      const bool rounds = (family == "llama" && quant != std::string("f32")) ||
                          (family == "qwen2" && quant == std::string("bf16"));
      const TempDir folder;
      converted(tiny(family).string(), folder.file("out"), quant);
      CHECK(largest_difference(logits_of(folder.file("out"), prompt), expected["logits"]) <
            (rounds ? 0.05 : 4e-3));
    }
  }
}

TEST_CASE("every family packed: runs, and no further from the float model than its bits allow") {
  for (const std::string& family : all_families()) {
    CAPTURE(family);
    const auto prompt = expected_of(family)["prompt_ids"].get<std::vector<int32_t>>();
    const std::vector<float> exact = logits_of(tiny(family).string(), prompt);
    double power = 0;
    for (const float x : exact) power += double{x} * x;
    struct Case {
      const char* quant;
      double worst;  // relative RMS error of the logits
    };
    for (const Case one : {Case{"q8_0", 0.03}, {"q6_k", 0.08}, {"q4_k_m", 0.35}}) {
      CAPTURE(one.quant);
      const TempDir folder;
      const ConvertReport report =
          converted(tiny(family).string(), folder.file("out"), one.quant, family == "gpt-oss-mxfp4");
      CHECK(rdrr::verify(folder.file("out"), nullptr)->ok());
      const std::vector<float> got = logits_of(folder.file("out"), prompt);
      double error = 0;
      for (size_t i = 0; i < got.size(); ++i) error += (got[i] - exact[i]) * (got[i] - exact[i]);
      // A router between two experts that are close takes the other one, which moves a tiny model far.
      const bool routed = family == "mixtral" || family == "qwen3-moe" || family.starts_with("gpt-oss");
      CHECK(std::sqrt(error / power) < (routed ? std::max(one.worst, 0.1) : one.worst));
      // Rows of 48, 96 and 144 values fill no block of 256, which is said.
      if (one.quant == std::string("q4_k_m"))
        CHECK(to_text(report).find("no multiple of 256 values") != std::string::npos);
    }
  }
}

TEST_CASE("packed weights are not packed anew unless that is asked for") {
  const TempDir folder;
  converted(tiny("llama").string(), folder.file("q8"), "q8_0");
  ConvertOptions options;
  options.quant = "q4_0";
  const auto refused = convert(folder.file("q8"), folder.file("no"), options);
  REQUIRE_FALSE(refused.has_value());
  CHECK(refused.error().code == ErrorCode::kBadInput);
  CHECK_MESSAGE(refused.error().message.find("--requantize") != std::string::npos, refused.error().message);
  CHECK_FALSE(fs::exists(folder.file("no")));
  converted(folder.file("q8"), folder.file("yes"), "q4_0", true);
  converted(folder.file("q8"), folder.file("same"), "q8_0");  // nothing changes
  CHECK(read_bytes(folder.file("same") + "/shard_00000.bin") ==
        read_bytes(folder.file("q8") + "/shard_00000.bin"));

  // Expanding loses nothing: the exact path computes with the same numbers.
  converted(folder.file("q8"), folder.file("f32"), "f32");
  const auto prompt = expected_of("llama")["prompt_ids"].get<std::vector<int32_t>>();
  const std::vector<float> a = logits_of(folder.file("q8"), prompt),
                           b = logits_of(folder.file("f32"), prompt);
  for (size_t i = 0; i < a.size(); ++i) CHECK(a[i] == doctest::Approx(b[i]).epsilon(1e-4));
}

TEST_CASE("a sharded folder converts like the single file, and stray tensors are left out and said") {
  const TempDir folder;
  const auto source = safetensors::SafetensorsFolder::open(tiny("qwen3").string());
  REQUIRE(source.has_value());
  fs::copy(tiny("qwen3"), folder.path() / "m", fs::copy_options::recursive);
  fs::remove(folder.path() / "m/model.safetensors");
  // Two files by turns, and a tensor that no text model has.
  nlohmann::json headers[2], map;
  std::vector<std::byte> data[2];
  const auto put = [&](size_t file, const std::string& name, const char* dtype, std::vector<uint64_t> shape,
                       std::span<const std::byte> bytes) {
    headers[file][name] = {{"dtype", dtype},
                           {"shape", std::move(shape)},
                           {"data_offsets", {data[file].size(), data[file].size() + bytes.size()}}};
    data[file].insert(data[file].end(), bytes.begin(), bytes.end());
    map[name] = "model-0000" + std::to_string(file + 1) + "-of-00002.safetensors";
  };
  size_t index = 0;
  for (const TensorInfo& info : (*source)->tensors())
    put(index++ % 2, info.name, "BF16", info.shape, (*source)->bytes(info)->data);
  put(1, "vision_tower.patch", "F32", {1}, std::vector<std::byte>(4));
  for (size_t file = 0; file < 2; ++file) {
    const std::string header = headers[file].dump();
    const uint64_t size = header.size();
    std::vector<std::byte> bytes(8);
    std::memcpy(bytes.data(), &size, 8);
    const auto text = std::as_bytes(std::span(header));
    bytes.insert(bytes.end(), text.begin(), text.end());
    bytes.insert(bytes.end(), data[file].begin(), data[file].end());
    write_bytes(folder.file("m/model-0000" + std::to_string(file + 1) + "-of-00002.safetensors"), bytes);
  }
  write_text(folder.file("m/model.safetensors.index.json"), nlohmann::json{{"weight_map", map}}.dump());

  converted(tiny("qwen3").string(), folder.file("single"));
  const ConvertReport report = converted(folder.file("m"), folder.file("sharded"));
  CHECK(to_text(report).find("vision_tower.patch") != std::string::npos);
  CHECK(read_bytes(folder.file("single") + "/shard_00000.bin") ==
        read_bytes(folder.file("sharded") + "/shard_00000.bin"));
}

TEST_CASE("a damaged configuration block is one clear error") {
  const TempDir folder;
  converted(tiny("qwen3-moe").string(), folder.file("m"));
  const std::string path = folder.file("m/manifest.json");
  std::ifstream in(path);
  const nlohmann::json manifest = nlohmann::json::parse(in);
  struct Fault {
    const char* key;
    nlohmann::json value;
  };
  for (const Fault& fault :
       {Fault{"version", 2},     {"version", "1"},       {"family", "gpt-9"},    {"family", nullptr},
        {"experts", 1000000000}, {"experts", -1},        {"expertsPerToken", 7}, {"expertsPerToken", 0},
        {"expertFfn", 1e9},      {"expertFfn", 47},      {"denseLayers", {3}},   {"denseLayers", {-1}},
        {"denseLayers", "all"},  {"activation", "tanh"}, {"routing", 5},         {"pooling", "sum"},
        {"causal", false},       {"normEps", "small"},   {"attentionScale", 0},  {"rotaryDim", 23},
        {"rotaryDim", 1000},     {"ropeBase", -5},       {"layerNorm", true},    {"learnedPositions", true},
        {"qkNorm", 1},           {"sinks", true}}) {
    nlohmann::json damaged = manifest;
    damaged["nativeConfig"][fault.key] = fault.value;
    CAPTURE(damaged["nativeConfig"][fault.key].dump());
    CAPTURE(fault.key);
    write_text(path, damaged.dump());
    const auto model = model::open_model(folder.file("m"));
    REQUIRE_FALSE(model.has_value());
    CHECK(model.error().message.starts_with("["));
    CHECK(model.error().message.find('\n') == std::string::npos);
  }
}

TEST_CASE("a folder without a tokenizer is one clear error and nothing is left behind") {
  const TempDir folder;
  fs::copy(tiny("llama"), folder.path() / "m", fs::copy_options::recursive);
  fs::remove(folder.path() / "m/tokenizer.json");
  const auto report = convert(folder.file("m"), folder.file("out"), {});
  REQUIRE_FALSE(report.has_value());
  CHECK(report.error().message.find("tokenizer.json") != std::string::npos);
  CHECK(std::distance(fs::directory_iterator(folder.path()), fs::directory_iterator()) == 1);
}

}  // namespace
}  // namespace doppler::test
