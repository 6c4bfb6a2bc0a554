// GGUF files of the tiny models as RDRR.
#include <doctest/doctest.h>

#include "engine/tiny_rdrr.h"
#include "formats/rdrr/verify.h"
#include "model/tiny_gguf.h"

namespace doppler::test {
namespace {

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

}  // namespace
}  // namespace doppler::test
