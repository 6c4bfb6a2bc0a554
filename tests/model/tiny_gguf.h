#pragma once
// Writes the tiny models of Hugging Face folders as GGUF files, with the names and keys that llama.cpp's
// converter writes.
#include <cmath>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "base/quants.h"
#include "formats/safetensors/safetensors.h"
#include "model/runner.h"
#include "support/gguf_writer.h"

namespace doppler::test {

struct Rename {
  const char *from, *to;
};

struct TinySource {
  const char* folder;
  const char* architecture;
  std::vector<Rename> names;  // within a layer
  bool paired = false;        // rows of q and k go so that rotated pairs are neighbours
  bool plus_one = false;      // norms hold w + 1
};

inline const std::vector<Rename> kLlamaNames{
    {"input_layernorm.weight", "attn_norm.weight"},
    {"self_attn.q_proj.weight", "attn_q.weight"},
    {"self_attn.k_proj.weight", "attn_k.weight"},
    {"self_attn.v_proj.weight", "attn_v.weight"},
    {"self_attn.o_proj.weight", "attn_output.weight"},
    {"post_attention_layernorm.weight", "ffn_norm.weight"},
    {"mlp.gate_proj.weight", "ffn_gate.weight"},
    {"mlp.up_proj.weight", "ffn_up.weight"},
    {"mlp.down_proj.weight", "ffn_down.weight"},
    {"self_attn.q_norm.weight", "attn_q_norm.weight"},
    {"self_attn.k_norm.weight", "attn_k_norm.weight"},
    {"self_attn.q_proj.bias", "attn_q.bias"},
    {"self_attn.k_proj.bias", "attn_k.bias"},
    {"self_attn.v_proj.bias", "attn_v.bias"},
    {"mlp.gate.weight", "ffn_gate_inp.weight"},
    {"block_sparse_moe.gate.weight", "ffn_gate_inp.weight"},
    {"self_attn.qkv_proj.weight", "attn_qkv.weight"},
    {"mlp.gate_up_proj.weight", "ffn_up.weight"},
};
inline const std::vector<Rename> kGemma2Names{
    {"input_layernorm.weight", "attn_norm.weight"},
    {"self_attn.q_proj.weight", "attn_q.weight"},
    {"self_attn.k_proj.weight", "attn_k.weight"},
    {"self_attn.v_proj.weight", "attn_v.weight"},
    {"self_attn.o_proj.weight", "attn_output.weight"},
    {"post_attention_layernorm.weight", "post_attention_norm.weight"},
    {"pre_feedforward_layernorm.weight", "ffn_norm.weight"},
    {"mlp.gate_proj.weight", "ffn_gate.weight"},
    {"mlp.up_proj.weight", "ffn_up.weight"},
    {"mlp.down_proj.weight", "ffn_down.weight"},
    {"post_feedforward_layernorm.weight", "post_ffw_norm.weight"},
};

class TinyGguf {
 public:
  TinyGguf(const TinySource& source, const std::filesystem::path& folder) : source_(source) {
    std::ifstream file(folder / "config.json");
    config_ = nlohmann::json::parse(file);
    tensors_ = take(safetensors::SafetensorsFolder::open(folder.string()));
  }

  GgufWriter convert() {
    set_keys();
    for (const TensorInfo& info : tensors_->tensors()) add(info);
    for (const char* part : {"gate", "up", "down"}) merge_experts(part);
    return std::move(gguf_);
  }

 private:
  uint32_t count(const char* key) const { return config_.at(key).get<uint32_t>(); }
  std::string key(const char* name) const { return std::string(source_.architecture) + "." + name; }

  void set_keys() {
    const std::vector<std::string> tokens(count("vocab_size"), "t");
    gguf_.set_string("general.architecture", source_.architecture);
    gguf_.set_strings("tokenizer.ggml.tokens", tokens);
    gguf_.set("tokenizer.ggml.eos_token_id", uint32_t{1});
    gguf_.set(key("block_count"), count("num_hidden_layers"));
    gguf_.set(key("context_length"), count("max_position_embeddings"));
    gguf_.set(key("embedding_length"), count("hidden_size"));
    gguf_.set(key("feed_forward_length"), count("intermediate_size"));
    gguf_.set(key("attention.head_count"), count("num_attention_heads"));
    gguf_.set(key("attention.head_count_kv"), count("num_key_value_heads"));
    gguf_.set(key("attention.layer_norm_rms_epsilon"), config_["rms_norm_eps"].get<float>());
    gguf_.set(key("rope.freq_base"), config_["rope_parameters"]["rope_theta"].get<float>());
    if (config_.contains("head_dim")) {
      gguf_.set(key("attention.key_length"), count("head_dim"));
      gguf_.set(key("attention.value_length"), count("head_dim"));
    }
    if (config_.contains("sliding_window") && !config_["sliding_window"].is_null())
      gguf_.set(key("attention.sliding_window"), count("sliding_window"));
    if (config_.contains("query_pre_attn_scalar"))
      gguf_.set(key("attention.scale"), 1.0f / std::sqrt(config_["query_pre_attn_scalar"].get<float>()));
    if (config_.contains("num_local_experts")) {
      gguf_.set(key("expert_count"), count("num_local_experts"));
      gguf_.set(key("expert_used_count"), count("num_experts_per_tok"));
    }
    if (config_.contains("moe_intermediate_size"))
      gguf_.set(key("expert_feed_forward_length"), count("moe_intermediate_size"));
    if (config_["rope_parameters"]["rope_type"] == "yarn") {
      gguf_.set_string(key("rope.scaling.type"), "yarn");
      gguf_.set(key("rope.scaling.factor"), config_["rope_parameters"]["factor"].get<float>());
      gguf_.set(key("rope.scaling.original_context_length"),
                config_["rope_parameters"]["original_max_position_embeddings"].get<uint32_t>());
    }
  }

  std::vector<float> values(const TensorInfo& info) const {
    const TensorBytes bytes = take(tensors_->bytes(info));
    std::vector<float> out(info.element_count());
    dequantize(info.dtype, bytes.data.data(), out.size(), out.data());
    return out;
  }

  // Rows of each head: the first half and the second half take turns.
  std::vector<float> pair_rows(const std::vector<float>& from, const TensorInfo& info) const {
    const size_t head = count("head_dim"), columns = info.columns();
    std::vector<float> to(from.size());
    for (size_t row = 0; row < info.rows(); ++row) {
      const size_t in_head = row % head,
                   target = in_head < head / 2 ? 2 * in_head : 2 * (in_head - head / 2) + 1;
      std::copy_n(from.begin() + static_cast<std::ptrdiff_t>(row * columns), columns,
                  to.begin() + static_cast<std::ptrdiff_t>((row - in_head + target) * columns));
    }
    return to;
  }

  void add(const TensorInfo& info) {
    std::vector<float> data = values(info);
    const bool norm = info.name.ends_with("norm.weight");
    if (norm && source_.plus_one)
      for (float& v : data) v += 1.0f;
    if (source_.paired &&
        (info.name.find("q_proj.w") != std::string::npos || info.name.find("k_proj.w") != std::string::npos))
      data = pair_rows(data, info);
    const DType dtype = info.shape.size() == 1 ? DType::kF32 : info.dtype;
    const auto put = [&](const std::string& name) { gguf_.add(name, dtype, info.shape, data); };
    if (info.name == "model.embed_tokens.weight") return put("token_embd.weight");
    if (info.name == "model.norm.weight") return put("output_norm.weight");
    if (info.name == "lm_head.weight") return put("output.weight");
    constexpr std::string_view prefix = "model.layers.";
    REQUIRE(info.name.starts_with(prefix));
    const size_t dot = info.name.find('.', prefix.size());
    const std::string layer = info.name.substr(prefix.size(), dot - prefix.size()),
                      rest = info.name.substr(dot + 1);
    for (const Rename& rename : source_.names)
      if (rest == rename.from) return put("blk." + layer + "." + rename.to);
    REQUIRE_MESSAGE(rest.find(".experts.") != std::string::npos, info.name);  // merged later
  }

  void merge_experts(const std::string& part) {
    if (!config_.contains("num_local_experts")) return;
    const std::string old = part == "gate" ? "w1" : part == "up" ? "w3" : "w2";
    for (uint32_t layer = 0; layer < count("num_hidden_layers"); ++layer) {
      std::vector<float> all;
      std::vector<uint64_t> shape;
      for (uint32_t e = 0; e < count("num_local_experts"); ++e) {
        const std::string start = "model.layers." + std::to_string(layer);
        const TensorInfo* info =
            tensors_->find(start + ".block_sparse_moe.experts." + std::to_string(e) + "." + old + ".weight");
        if (!info)
          info = tensors_->find(start + ".mlp.experts." + std::to_string(e) + "." + part + "_proj.weight");
        REQUIRE(info != nullptr);
        const std::vector<float> one = values(*info);
        all.insert(all.end(), one.begin(), one.end());
        shape = {count("num_local_experts"), info->shape[0], info->shape[1]};
      }
      gguf_.add("blk." + std::to_string(layer) + ".ffn_" + part + "_exps.weight", DType::kBF16, shape, all);
    }
  }

  const TinySource& source_;
  nlohmann::json config_;
  std::unique_ptr<safetensors::SafetensorsFolder> tensors_;
  GgufWriter gguf_;
};

/// The families that are written as GGUF, by their folders among the tiny models.
inline std::vector<TinySource> tiny_sources() {
  return {
      {"llama", "llama", kLlamaNames, true},
      {"llama-yarn", "llama", kLlamaNames, true},
      {"mistral-sliding", "llama", kLlamaNames, true},
      {"mixtral", "llama", kLlamaNames, true},
      {"qwen2", "qwen2", kLlamaNames},
      {"qwen3", "qwen3", kLlamaNames},
      {"qwen3-moe", "qwen3moe", kLlamaNames},
      {"phi3", "phi3", kLlamaNames},
      {"gemma", "gemma", kLlamaNames, false, true},
      {"gemma2", "gemma2", kGemma2Names, false, true},
  };
}

}  // namespace doppler::test
