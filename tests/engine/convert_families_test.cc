// The tiny models of every family, from Hugging Face folders and from GGUF, as RDRR.
#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <set>

#include "engine/convert.h"
#include "formats/rdrr/rdrr.h"
#include "formats/rdrr/verify.h"
#include "model/config_block.h"
#include "model/config_rdrr.h"
#include "model/runner.h"
#include "model/tiny_gguf.h"
#include "support/files.h"

namespace doppler::test {
namespace {

namespace fs = std::filesystem;

fs::path tiny(const std::string& family) { return fs::path(DOPPLER_TINY_DIR) / "seed-9" / family; }

std::vector<std::string> all_families() {
  std::vector<std::string> names;
  for (const auto& entry : fs::directory_iterator(tiny("")))
    names.push_back(entry.path().filename().string());
  std::sort(names.begin(), names.end());
  REQUIRE(names.size() == 16);
  return names;
}

nlohmann::json expected_of(const std::string& family) {
  std::ifstream file(tiny(family) / "expected.json");
  return nlohmann::json::parse(file);
}

std::vector<float> logits_of(const std::string& path, const std::vector<int32_t>& prompt) {
  Runner runner(path, Precision::kExact, KvType::kF32, 256);
  std::vector<float> logits(prompt.size() * runner.vocab());
  const auto done = runner.executor().forward(runner.kv(), prompt, LogitRows::kAll, logits);
  REQUIRE_MESSAGE(done.has_value(), (done ? "" : done.error().message));
  return logits;
}

double largest_difference(const std::vector<float>& got, const nlohmann::json& rows) {
  double largest = 0;
  size_t i = 0;
  for (const auto& row : rows)
    for (const double wanted : row) largest = std::max(largest, std::abs(got.at(i++) - wanted));
  return largest;
}

ConvertReport converted(const std::string& from, const std::string& to, const std::string& quant = "keep",
                        bool requantize = false) {
  ConvertOptions options;
  options.quant = quant;
  options.requantize = requantize;
  options.shard_size_bytes = 100'000;  // tensors cross shards
  const auto report = convert(from, to, options);
  REQUIRE_MESSAGE(report.has_value(), (report ? "" : report.error().message));
  return *report;
}

void check_groups(const std::string& path, const model::ModelConfig& config) {
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

void set_tokens(GgufWriter& gguf) {
  std::vector<std::string> tokens;
  for (int i = 0; i < 384; ++i) tokens.push_back("t" + std::to_string(i));
  gguf.set_string("tokenizer.ggml.model", "llama");
  gguf.set_strings("tokenizer.ggml.tokens", tokens);
  gguf.set_array<float>("tokenizer.ggml.scores", std::vector<float>(tokens.size(), 0.0f));
  gguf.set("tokenizer.ggml.eos_token_id", uint32_t{1});
}

GgufWriter tiny_gguf_with_tokens(const TinySource& source) {
  GgufWriter gguf = TinyGguf(source, tiny(source.folder)).convert();
  set_tokens(gguf);
  return gguf;
}

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

TEST_CASE("GGUF files of the families: transformers' logits, and experts one by one") {
  for (const TinySource& source : tiny_sources()) {
    CAPTURE(source.folder);
    const TempDir folder;
    tiny_gguf_with_tokens(source).write(folder.file("m.gguf"));
    converted(folder.file("m.gguf"), folder.file("out"));
    CHECK(rdrr::verify(folder.file("out"), nullptr)->ok());
    const nlohmann::json expected = expected_of(source.folder);
    const auto prompt = expected["prompt_ids"].get<std::vector<int32_t>>();
    CHECK(largest_difference(logits_of(folder.file("out"), prompt), expected["logits"]) < 2e-3);
    const auto model = model::open_model(folder.file("out"));
    REQUIRE(model.has_value());
    check_groups(folder.file("out"), model->config);
    CHECK_FALSE(model->config.rope_interleaved);
    if (model->config.experts == 0) continue;
    for (const TensorInfo& info : model->source->tensors()) CHECK(info.shape.size() <= 2);
  }
}

/// gpt-oss as llama.cpp's converter writes it: gates and ups in stacks of their own.
GgufWriter gpt_oss_gguf(const std::string& family) {
  const model::LoadedModel source = take(model::open_model(tiny(family).string()));
  const model::ModelConfig& c = source.config;
  GgufWriter gguf;
  set_tokens(gguf);
  gguf.set_string("general.architecture", "gpt-oss");
  gguf.set("gpt-oss.block_count", c.layers);
  gguf.set("gpt-oss.context_length", c.max_context);
  gguf.set("gpt-oss.embedding_length", c.hidden);
  gguf.set("gpt-oss.feed_forward_length", c.ffn);
  gguf.set("gpt-oss.attention.head_count", c.heads);
  gguf.set("gpt-oss.attention.head_count_kv", c.kv_heads);
  gguf.set("gpt-oss.attention.key_length", c.head_dim);
  gguf.set("gpt-oss.attention.value_length", c.head_dim);
  gguf.set("gpt-oss.attention.layer_norm_rms_epsilon", c.rms_eps);
  gguf.set("gpt-oss.attention.sliding_window", c.window);
  gguf.set("gpt-oss.rope.freq_base", c.rope_base);
  gguf.set_string("gpt-oss.rope.scaling.type", c.rope_scaling.type);
  gguf.set("gpt-oss.rope.scaling.factor", c.rope_scaling.factor);
  gguf.set("gpt-oss.rope.scaling.original_context_length", c.rope_scaling.original_context);
  gguf.set("gpt-oss.expert_count", c.experts);
  gguf.set("gpt-oss.expert_used_count", c.experts_per_token);
  gguf.set("gpt-oss.expert_feed_forward_length", c.expert_ffn);
  const auto put = [&](std::string name, DType dtype, std::vector<uint64_t> shape,
                       std::vector<std::byte> data) {
    gguf.tensors.push_back({std::move(name),
                            std::move(shape),
                            static_cast<uint32_t>(dtype_info(dtype).ggml_type),
                            std::move(data),
                            {}});
  };
  const std::vector<Rename> names{{"input_layernorm.weight", "attn_norm.weight"},
                                  {"self_attn.q_proj", "attn_q"},
                                  {"self_attn.k_proj", "attn_k"},
                                  {"self_attn.v_proj", "attn_v"},
                                  {"self_attn.o_proj", "attn_output"},
                                  {"self_attn.sinks", "attn_sinks.weight"},
                                  {"post_attention_layernorm.weight", "post_attention_norm.weight"},
                                  {"mlp.router", "ffn_gate_inp"},
                                  {"mlp.experts.down_proj_bias", "ffn_down_exps.bias"}};
  for (const TensorInfo& info : source.source->tensors()) {
    std::string name;
    if (info.name == "model.embed_tokens.weight") name = "token_embd.weight";
    if (info.name == "model.norm.weight") name = "output_norm.weight";
    if (info.name == "lm_head.weight") name = "output.weight";
    for (const Rename& rename : names)
      if (const size_t at = info.name.find(rename.from); at != std::string::npos)
        name = "blk." + info.name.substr(13, 1) + "." + rename.to +
               info.name.substr(at + std::string_view(rename.from).size());
    const auto bytes = source.source->bytes(info)->data;
    if (!name.empty()) put(name, info.dtype, info.shape, {bytes.begin(), bytes.end()});
  }
  for (const graph::Weight& weight : source.graph.weights) {
    const bool gate_up = weight.name.find("gate_up_proj") != std::string::npos;
    const std::string layer = "blk." + weight.name.substr(13, 1) + ".";
    if (gate_up && weight.experts == 0) {  // biases, [experts, rows]
      const auto data = source.weights->load(weight)->bytes;
      std::vector<std::byte> halves[2];
      for (size_t i = 0; i < data.size(); ++i) halves[i / 2 % 2].push_back(data[i]);  // of BF16
      for (const int odd : {0, 1})
        put(layer + (odd ? "ffn_up_exps.bias" : "ffn_gate_exps.bias"), weight.dtype,
            {weight.rows, weight.columns / 2}, halves[odd]);
    }
    if (weight.experts == 0) continue;
    std::vector<std::byte> halves[2];
    for (uint32_t e = 0; e < weight.experts; ++e) {
      const graph::WeightData data = take(source.weights->load_expert(weight, e));
      for (uint32_t r = 0; r < weight.rows; ++r) {
        const auto row = data.bytes.subspan(r * data.row_bytes, data.row_bytes);
        std::vector<std::byte>& to = halves[gate_up ? r % 2 : 0];
        to.insert(to.end(), row.begin(), row.end());
      }
    }
    const uint64_t rows = gate_up ? weight.rows / 2 : weight.rows;
    put(layer + (gate_up ? "ffn_gate_exps.weight" : "ffn_down_exps.weight"), weight.dtype,
        {weight.experts, rows, weight.columns}, halves[0]);
    if (gate_up)
      put(layer + "ffn_up_exps.weight", weight.dtype, {weight.experts, rows, weight.columns}, halves[1]);
  }
  return gguf;
}

TEST_CASE("gpt-oss from GGUF: the very experts that its folder gives") {
  for (const char* family : {"gpt-oss", "gpt-oss-mxfp4"}) {
    CAPTURE(family);
    const TempDir folder;
    gpt_oss_gguf(family).write(folder.file("m.gguf"));
    const nlohmann::json expected = expected_of(family);
    const auto prompt = expected["prompt_ids"].get<std::vector<int32_t>>();
    CHECK(largest_difference(logits_of(folder.file("m.gguf"), prompt), expected["logits"]) < 2e-3);
    converted(folder.file("m.gguf"), folder.file("from-gguf"));
    converted(tiny(family).string(), folder.file("from-folder"));
    CHECK(largest_difference(logits_of(folder.file("from-gguf"), prompt), expected["logits"]) < 2e-3);
    const auto a = take(rdrr::RdrrModel::open(folder.file("from-gguf"))),
               b = take(rdrr::RdrrModel::open(folder.file("from-folder")));
    CHECK(a->tensors().size() == b->tensors().size());
    for (const TensorInfo& info : b->tensors()) {
      CAPTURE(info.name);
      const TensorInfo* other = a->find(info.name);
      REQUIRE(other);
      CHECK(other->shape == info.shape);
      const auto x = a->bytes(*other)->data, y = b->bytes(info)->data;
      CHECK(std::equal(x.begin(), x.end(), y.begin(), y.end()));
    }
    check_groups(folder.file("from-gguf"), take(model::open_model(folder.file("from-gguf"))).config);
  }
}

TEST_CASE("rope_freqs of a LLaMA 3 GGUF stay in force") {
  const TinySource source = tiny_sources().front();
  REQUIRE(source.folder == std::string("llama"));
  const TempDir folder;
  const auto prompt = expected_of("llama")["prompt_ids"].get<std::vector<int32_t>>();
  const auto logits = [&](bool factors) {
    GgufWriter gguf = tiny_gguf_with_tokens(source);
    std::vector<float> values(12);
    for (size_t i = 0; i < values.size(); ++i) values[i] = 1.0f + static_cast<float>(i);
    if (factors) gguf.add("rope_freqs.weight", DType::kF32, {12}, values);
    const std::string name = factors ? "with" : "without";
    gguf.write(folder.file(name + ".gguf"));
    converted(folder.file(name + ".gguf"), folder.file(name));
    return logits_of(folder.file(name), prompt);
  };
  const std::vector<float> with = logits(true), without = logits(false);
  CHECK(with != without);
  const std::vector<float> wanted = logits_of(folder.file("with.gguf"), prompt);
  for (size_t i = 0; i < with.size(); ++i) CHECK(with[i] == doctest::Approx(wanted[i]).epsilon(1e-3));
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
