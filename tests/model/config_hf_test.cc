// config.json: older spellings of the same model, and what is refused.
#include <filesystem>
#include <fstream>
#include <functional>
#include <nlohmann/json.hpp>

#include "model_files.h"
#include "runner.h"
#include "support/files.h"

namespace doppler::test {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::json;

/// A tiny model's folder with its config.json changed; removed when it goes.
class Changed {
 public:
  Changed(const char* family, const std::function<void(Json&)>& change) {
    fs::copy(fs::path(DOPPLER_TINY_DIR) / "seed-9" / family, folder(), fs::copy_options::recursive);
    std::ifstream file(folder() / "config.json");
    Json config = Json::parse(file);
    change(config);
    write_text((folder() / "config.json").string(), config.dump());
  }
  fs::path folder() const { return temporary_.path() / "m"; }

 private:
  TempDir temporary_;
};

std::string error_of(const char* family, const std::function<void(Json&)>& change) {
  const Changed changed(family, change);
  const auto model = model::open_model(changed.folder().string());
  if (model) return "";
  CHECK(model.error().message.starts_with("["));
  CHECK(model.error().message.find('\n') == std::string::npos);
  return model.error().message;
}

TEST_CASE("rope_theta and rope_scaling mean what rope_parameters does") {
  for (const char* family : {"llama", "llama3-rope", "llama-linear-rope", "llama-yarn", "gemma3"}) {
    CAPTURE(family);
    const Changed changed(family, [](Json& c) {
      Json rope = c["rope_parameters"];
      c.erase("rope_parameters");
      if (rope.contains("full_attention")) {
        c["rope_local_base_freq"] = rope["sliding_attention"]["rope_theta"];
        rope = Json(rope["full_attention"]);
      }
      c["rope_theta"] = rope["rope_theta"];
      rope.erase("rope_theta");
      rope["type"] = rope["rope_type"];
      rope.erase("rope_type");
      c["rope_scaling"] = rope["type"] == "default" ? Json(nullptr) : rope;
    });
    const auto a = take(model::open_model((fs::path(DOPPLER_TINY_DIR) / "seed-9" / family).string()));
    const auto b = take(model::open_model(changed.folder().string()));
    REQUIRE(a.graph.rope_tables.size() == b.graph.rope_tables.size());
    for (size_t i = 0; i < a.graph.rope_tables.size(); ++i) {
      CHECK(a.graph.rope_tables[i].inv_freq == b.graph.rope_tables[i].inv_freq);
      CHECK(a.graph.rope_tables[i].magnitude == b.graph.rope_tables[i].magnitude);
    }
  }
}

TEST_CASE("longrope: two tables, chosen by the context, and a magnitude of the stretch") {
  const Changed changed("phi3", [](Json& c) {
    c["max_position_embeddings"] = 256;
    c["original_max_position_embeddings"] = 64;
    c["rope_parameters"]["rope_type"] = "longrope";
    c["rope_parameters"]["short_factor"] = std::vector<double>(12, 1.0);
    c["rope_parameters"]["long_factor"] = std::vector<double>(12, 4.0);
  });
  const auto m = take(model::open_model(changed.folder().string()));
  const graph::RopeTable& table = m.graph.rope_tables.at(0);
  REQUIRE(table.inv_freq.size() == 12);
  REQUIRE(table.long_inv_freq.size() == 12);
  for (size_t i = 0; i < 12; ++i) CHECK(table.inv_freq[i] == doctest::Approx(4 * table.long_inv_freq[i]));
  CHECK(table.long_above == 64);
  CHECK(table.magnitude == doctest::Approx(std::sqrt(1 + std::log(4.0) / std::log(64.0))));

  const std::vector<int32_t> ids{0, 5, 9, 12};
  std::vector<std::vector<float>> logits;
  for (const uint32_t context : {64u, 65u}) {
    Runner runner(changed.folder().string(), Precision::kExact, KvType::kF32, context);
    logits.push_back(runner.feed(ids));
  }
  CHECK(logits[0] != logits[1]);
}

TEST_CASE("partial rotary turns the first part of each head") {
  const Changed changed("phi3", [](Json& c) { c["rope_parameters"]["partial_rotary_factor"] = 0.5; });
  const auto m = take(model::open_model(changed.folder().string()));
  CHECK(m.config.rotary_dim == 12);
  CHECK(m.graph.rope_tables.at(0).inv_freq.size() == 6);
}

TEST_CASE("a text model inside a larger one goes by its text_config") {
  const Changed changed("gemma3", [](Json& c) {
    Json outer{{"model_type", "gemma3"}, {"eos_token_id", Json::array({1, 2})}};
    outer["text_config"] = c;
    c = outer;
  });
  const auto m = take(model::open_model(changed.folder().string()));
  CHECK(m.config.family == model::Family::kGemma3);
  CHECK(m.config.end_ids == std::vector<int32_t>{1, 2});
}

TEST_CASE("what a config.json may not say") {
  const auto has = [](const std::string& message, const char* part) {
    CAPTURE(message);
    CHECK(message.find(part) != std::string::npos);
  };
  has(error_of("llama", [](Json& c) { c["model_type"] = "mamba"; }), "\"mamba\"");
  has(error_of("llama", [](Json& c) { c["hidden_size"] = "48"; }), "hidden_size");
  has(error_of("llama", [](Json& c) { c["hidden_size"] = 64; }), "embed_tokens");
  has(error_of("llama", [](Json& c) { c["num_hidden_layers"] = 100000; }), "num_hidden_layers");
  has(error_of("llama", [](Json& c) { c["num_hidden_layers"] = 2; }), "at least 3");
  has(error_of("llama", [](Json& c) { c["num_key_value_heads"] = 4; }), "num_key_value_heads");
  has(error_of("llama", [](Json& c) { c["head_dim"] = 23; }), "head size");
  has(error_of("llama", [](Json& c) { c["head_dim"] = 32; }), "q_proj");
  has(error_of("llama", [](Json& c) { c["hidden_act"] = "mish"; }), "\"mish\"");
  has(error_of("llama", [](Json& c) { c["vocab_size"] = 385; }), "vocab_size");
  has(error_of("llama", [](Json& c) { c["eos_token_id"] = 384; }), "eos_token_id");
  has(error_of("llama", [](Json& c) { c["rope_parameters"]["rope_type"] = "spiral"; }), "\"spiral\"");
  has(error_of("llama-yarn", [](Json& c) { c["rope_parameters"]["beta_fast"] = 0.5; }), "beta_fast");
  has(error_of("mixtral", [](Json& c) { c["num_experts_per_tok"] = 9; }), "num_experts_per_tok");
  has(error_of("mixtral", [](Json& c) { c["num_local_experts"] = 9; }), "gate.weight");
  has(error_of("gpt-oss", [](Json& c) { c["intermediate_size"] = 48; }), "gate_up_proj");
  has(error_of("gemma2", [](Json& c) { c["layer_types"][1] = "linear_attention"; }), "linear_attention");
  has(error_of("gpt2", [](Json& c) { c["n_embd"] = 95; }), "n_embd");
  has(error_of("gpt2", [](Json& c) { c = Json::array(); }), "JSON object");
}

}  // namespace
}  // namespace doppler::test
