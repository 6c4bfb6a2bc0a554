// Damaged Hugging Face folders: one clear error, little time, little memory.
#include <cstring>
#include <filesystem>
#include <fstream>

#include "run_binary.h"
#include "support/files.h"

namespace doppler::test {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::json;

/// A copy of a tiny model, to be damaged.
struct Folder {
  TempDir dir;
  fs::path path = dir.path() / "m";

  explicit Folder(const char* family = "llama") {
    fs::copy(fs::path(DOPPLER_TINY_DIR) / "seed-9" / family, path, fs::copy_options::recursive);
  }
  std::string file(const std::string& name) const { return (path / name).string(); }
  Json json(const std::string& name) const {
    std::ifstream in(file(name));
    return Json::parse(in);
  }
  void set(const std::string& name, const Json& value) const { write_text(file(name), value.dump()); }
  void index(const Json& weight_map) const {
    set("model.safetensors.index.json", {{"weight_map", weight_map}});
  }
};

void check_refused(const Folder& folder, const std::string& says) {
  const std::string out = folder.dir.file("out");
  for (const std::vector<std::string>& arguments :
       {std::vector<std::string>{"run", folder.path.string(), "hello", "--max-tokens", "1", "--device",
                                 "cpu"},
        {"convert", folder.path.string(), out}}) {
    const Ran ran = run_doppler(arguments);
    CAPTURE(arguments[0]);
    CAPTURE(ran.err);
    CHECK(ran.exit_code == 1);
    CHECK(ran.out.empty());
    CHECK(ran.one_error_line());
    CHECK(ran.err.find(says) != std::string::npos);
    CHECK(ran.cpu_seconds < 2);
    CHECK(ran.max_rss_bytes < 200l << 20);
    CHECK_FALSE(fs::exists(out));
  }
}

TEST_CASE("shards that are short, missing or elsewhere") {
  {
    const Folder folder;
    fs::resize_file(folder.file("model.safetensors"), 300'000);
    check_refused(folder, "cut short");
  }
  {
    const Folder folder;
    fs::resize_file(folder.file("model.safetensors"), 4);
    check_refused(folder, "8 bytes of header length");
  }
  {
    const Folder folder;
    fs::remove(folder.file("model.safetensors"));
    check_refused(folder, "[");
  }
  {
    const Folder folder;
    folder.index({{"model.norm.weight", "gone.safetensors"}});
    check_refused(folder, "gone.safetensors");
  }
  for (const char* outside : {"../m/model.safetensors", "/etc/passwd", "..", "a\\b.safetensors", ""}) {
    const Folder folder;
    folder.index({{"model.norm.weight", outside}});
    check_refused(folder, "the name of a file in this folder");
  }
  {
    const Folder folder;
    folder.index({{"model.norm.weight", 3}});
    check_refused(folder, "the name of a file in this folder");
  }
  {
    const Folder folder;
    folder.index({{"no.such.tensor", "model.safetensors"}});
    check_refused(folder, "no.such.tensor");
  }
  {
    const Folder folder;  // both would hold every tensor
    fs::copy(folder.file("model.safetensors"), folder.file("copy.safetensors"));
    folder.index({{"model.norm.weight", "model.safetensors"}, {"lm_head.weight", "copy.safetensors"}});
    check_refused(folder, "in two");
  }
  {
    const Folder folder;
    write_text(folder.file("model.safetensors.index.json"), "[[[[");
    check_refused(folder, "weight_map");
  }
}

/// The header of model.safetensors changed; the data stays.
template <class Change>
void change_header(const Folder& folder, Change change) {
  const std::vector<std::byte> bytes = read_bytes(folder.file("model.safetensors"));
  uint64_t size = 0;
  std::memcpy(&size, bytes.data(), sizeof size);
  Json header = Json::parse(reinterpret_cast<const char*>(bytes.data()) + 8,
                            reinterpret_cast<const char*>(bytes.data()) + 8 + size);
  change(header);
  const std::string text = header.dump();
  const uint64_t new_size = text.size();
  std::vector<std::byte> out(8);
  std::memcpy(out.data(), &new_size, sizeof new_size);
  const auto view = std::as_bytes(std::span(text));
  out.insert(out.end(), view.begin(), view.end());
  out.insert(out.end(), bytes.begin() + 8 + static_cast<std::ptrdiff_t>(size), bytes.end());
  write_bytes(folder.file("model.safetensors"), out);
}

TEST_CASE("headers that lie about types, shapes and places") {
  struct Fault {
    const char *key, *says;
    Json value;
  };
  for (const Fault& fault : {Fault{"dtype", "F32, F16, BF16", "F8_E4M3"},
                             {"dtype", "dtype", 5},
                             {"dtype", "tensor", "F16"},
                             {"shape", "tensor", {1000000000, 1000000000, 1000000000}},
                             {"shape", "tensor", {-1, 48}},
                             {"shape", "tensor", {384, 49}},
                             {"shape", "tensor", Json::array()},
                             {"data_offsets", "data_offsets", {0, 1e18}},
                             {"data_offsets", "data_offsets", {64, 0}},
                             {"data_offsets", "tensor", {0}},
                             {"data_offsets", "tensor", "here"}}) {
    CAPTURE(fault.key);
    CAPTURE(fault.value.dump());
    const Folder folder;
    change_header(folder, [&](Json& header) { header["lm_head.weight"][fault.key] = fault.value; });
    check_refused(folder, fault.says);
  }
  const Folder overlapping;
  change_header(overlapping, [](Json& header) {
    header["lm_head.weight"]["data_offsets"] = header["model.embed_tokens.weight"]["data_offsets"];
  });
  check_refused(overlapping, "overlap");
  const Folder lacking;
  change_header(lacking, [](Json& header) { header.erase("model.layers.1.mlp.up_proj.weight"); });
  check_refused(lacking, "model.layers.1.mlp.up_proj.weight");
  const Folder huge_header;
  std::vector<std::byte> bytes = read_bytes(huge_header.file("model.safetensors"));
  std::fill_n(bytes.begin(), 8, std::byte{0x7f});
  write_bytes(huge_header.file("model.safetensors"), bytes);
  check_refused(huge_header, "a header of at most");
}

TEST_CASE("config.json with absurd values") {
  struct Fault {
    const char *family, *key;
    Json value;
  };
  for (const Fault& fault : {Fault{"llama", "head_dim", 0},
                             {"llama", "head_dim", -8},
                             {"llama", "head_dim", "24"},
                             {"llama", "head_dim", 23},
                             {"llama", "head_dim", 1000000},
                             {"llama", "num_hidden_layers", 1000000000},
                             {"llama", "num_hidden_layers", 0},
                             {"llama", "num_hidden_layers", 4},
                             {"llama", "num_hidden_layers", 2.5},
                             {"llama", "hidden_size", -48},
                             {"llama", "hidden_size", 49},
                             {"llama", "hidden_size", "big"},
                             {"llama", "hidden_size", nullptr},
                             {"llama", "intermediate_size", 1e300},
                             {"llama", "num_attention_heads", 0},
                             {"llama", "num_key_value_heads", 5},
                             {"llama", "vocab_size", 12},
                             {"llama", "max_position_embeddings", 0},
                             {"llama", "rms_norm_eps", "tiny"},
                             {"llama", "rms_norm_eps", -1},
                             {"llama", "hidden_act", "softsign"},
                             {"llama", "hidden_act", 7},
                             {"llama", "eos_token_id", 100000},
                             {"llama", "eos_token_id", -3},
                             {"llama", "eos_token_id", {{"a", 1}}},
                             {"llama", "tie_word_embeddings", "no"},
                             {"llama", "model_type", "gpt-9"},
                             {"llama", "model_type", nullptr},
                             {"llama", "model_type", 12},
                             {"llama-yarn", "rope_parameters", {{"rope_type", "spiral"}}},
                             {"llama-yarn", "rope_parameters", {{"rope_type", "yarn"}, {"factor", -4}}},
                             {"gemma3", "layer_types", {"full_attention"}},
                             {"gemma3", "layer_types", "sliding"},
                             {"gemma3", "sliding_window", -2},
                             {"mixtral", "num_local_experts", 1000000000},
                             {"mixtral", "num_local_experts", 9},
                             {"mixtral", "num_experts_per_tok", 0},
                             {"mixtral", "num_experts_per_tok", 9},
                             {"qwen3-moe", "moe_intermediate_size", 4},
                             {"gpt2", "n_head", 7},
                             {"gpt2", "n_embd", 0}}) {
    CAPTURE(fault.family);
    CAPTURE(fault.key);
    CAPTURE(fault.value.dump());
    const Folder folder(fault.family);
    Json config = folder.json("config.json");
    config[fault.key] = fault.value;
    folder.set("config.json", config);
    check_refused(folder, "[model]");
  }
}

TEST_CASE("config.json that is none") {
  for (const char* text : {"", "{", "[]", "null", "\"config\"", "{\"model_type\": \"llama\""}) {
    CAPTURE(text);
    const Folder folder;
    write_text(folder.file("config.json"), text);
    check_refused(folder, "a JSON object");
  }
  const Folder deep;
  write_text(deep.file("config.json"), std::string(200'000, '['));
  check_refused(deep, "[");
}

TEST_CASE("tokenizers that are missing or damaged") {
  {
    const Folder folder;
    fs::remove(folder.file("tokenizer.json"));
    check_refused(folder, "[tokenizer]");
  }
  for (const char* text : {"", "{}", "{\"model\": 5}", "[1, 2"}) {
    CAPTURE(text);
    const Folder folder;
    write_text(folder.file("tokenizer.json"), text);
    check_refused(folder, "[tokenizer.json]");
  }
}

}  // namespace
}  // namespace doppler::test
