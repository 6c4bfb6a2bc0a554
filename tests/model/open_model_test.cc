// Files whose container is valid but whose model is not, and the graphs of models that are.
#include <filesystem>
#include <set>

#include "model/config_rdrr.h"
#include "model/model.h"
#include "model_files.h"
#include "runner.h"
#include "support/files.h"
#include "support/gguf_faults.h"
#include "support/tiny_llama.h"

namespace doppler::test {
namespace {

void check_message(const std::string& message) {
  CAPTURE(message);
  CHECK(message.starts_with("["));
  CHECK(message.find('\n') == std::string::npos);
  CHECK(message.size() < 400);
}

TEST_CASE("hand-made malformed files are refused with one line") {
  size_t count = 0;
  for (const auto& entry : std::filesystem::directory_iterator(golden("bad-gguf"))) {
    CAPTURE(entry.path().string());
    const auto model = model::open_model(entry.path().string());
    REQUIRE_FALSE(model.has_value());
    check_message(model.error().message);
    ++count;
  }
  CHECK(count == 31);
}

TEST_CASE("one fault in an otherwise valid model is refused with one line") {
  // These concern the tokenizer alone, which reads its own part of the file.
  const std::set<std::string> tokenizer_faults{"scores-u8", "tokens-vs-scores-len", "token-types-short",
                                               "unknown-tokenizer", "merge-without-space"};
  const TempDir folder;
  const std::string path = folder.file("model.gguf");
  for (const Fault& fault : gguf_faults()) {
    if (tokenizer_faults.contains(fault.name)) continue;
    CAPTURE(fault.name);
    write_bytes(path, fault.bytes);
    const auto model = model::open_model(path);
    REQUIRE_FALSE(model.has_value());
    check_message(model.error().message);
  }
}

std::string error_after(const std::function<void(GgufWriter&)>& change, const TinyLlama& options = {}) {
  const TempDir folder;
  GgufWriter writer = tiny_llama(options);
  change(writer);
  writer.write(folder.file("m.gguf"));
  const auto model = model::open_model(folder.file("m.gguf"));
  return model ? "" : model.error().message;
}

TEST_CASE("errors name the key, what is allowed and what was got") {
  const auto has = [](const std::string& message, const char* part) {
    CAPTURE(message);
    CHECK(message.find(part) != std::string::npos);
  };
  has(error_after([](GgufWriter& g) { g.set("llama.block_count", 100000u); }),
      "llama.block_count from 1 to 1024");
  has(error_after([](GgufWriter& g) { g.set("llama.block_count", 5u); }), "llama.block_count of 2 wanted");
  has(error_after([](GgufWriter& g) { g.set("llama.block_count", 1u); }), "got 1");
  has(error_after([](GgufWriter& g) { g.erase("llama.context_length"); }), "llama.context_length");
  has(error_after([](GgufWriter& g) { g.set_string("general.architecture", "mamba"); }),
      "llama, gpt2, qwen2");
  has(error_after([](GgufWriter& g) { g.set("llama.expert_count", 8u); }), "llama.expert_used_count");
  has(error_after([](GgufWriter& g) { g.set("llama.vocab_size", 5u); }), "llama.vocab_size");
  has(error_after([](GgufWriter& g) { g.set_string("llama.rope.scaling.type", "spiral"); }), "\"spiral\"");
  has(error_after([](GgufWriter& g) { g.tensor("blk.1.ffn_up.weight").shape = {64, 128}; }),
      "[128, 64] wanted");
  has(error_after([](GgufWriter& g) { g.tensor("blk.1.ffn_up.weight").name = "x"; }),
      "blk.1.ffn_up.weight wanted");
  has(error_after([](GgufWriter& g) { g.tensor("blk.0.attn_k.weight").type = 26; }), "I32");
  has(error_after(
          [](GgufWriter& g) { g.add("blk.1.attn_q.bias", DType::kF32, {32}, std::vector<float>(32)); }),
      "blk.1.attn_q.bias of shape [64] wanted");
  has(error_after(
          [](GgufWriter& g) { g.add("rope_freqs.weight", DType::kF32, {8}, std::vector<float>(8, 0.0f)); }),
      "positive");
}

// Nodes read what an earlier node wrote, and every view lies within its value.
void check_graph(const graph::Graph& g) {
  std::set<graph::ValueId> written;
  const auto inside = [&](const graph::View& view) {
    REQUIRE(view.value < g.values.size());
    CHECK(view.offset + view.width <= g.values[view.value].width);
  };
  std::set<graph::WeightId> used;
  for (const graph::Node& node : g.nodes) {
    for (const graph::View& view : {node.in, node.in2}) {
      if (view.value == graph::kNone) continue;
      inside(view);
      CHECK(written.contains(view.value));
    }
    if (node.out.value != graph::kNone) {
      inside(node.out);
      written.insert(node.out.value);
    }
    for (const auto* ids : {&node.weights, &node.biases})
      for (const graph::WeightId id : *ids) {
        if (ids == &node.biases && id == graph::kNone) continue;
        REQUIRE(id < g.weights.size());
        used.insert(id);
      }
  }
  CHECK(used.size() == g.weights.size());
  inside(g.logits);
  CHECK(written.contains(g.logits.value));
  CHECK(g.values[g.logits.value].selected);
}

TEST_CASE("gemma 3 270m: sizes, pattern and graph") {
  const auto m = take(model::open_model(gemma()));
  CHECK(m.config.layers == 18);
  CHECK(m.config.head_dim == 256);
  CHECK(m.config.vocab == 262144);
  CHECK(m.config.tied_head);
  CHECK(m.config.end_ids == std::vector<int32_t>{1});
  CHECK(m.config.rope_base == 1e6f);
  CHECK(m.config.rope_base_local == 1e4f);
  for (uint32_t i = 0; i < 18; ++i) CHECK(m.config.sliding[i] == (i != 5 && i != 11 && i != 17));
  check_graph(m.graph);
  REQUIRE(m.graph.kv_layers.size() == 18);
  CHECK(m.graph.kv_layers[4].window == 512);
  CHECK(m.graph.kv_layers[5].window == 0);
}

TEST_CASE("smollm2 135m: sizes and graph") {
  const auto m = take(model::open_model(smollm2()));
  CHECK(m.config.layers == 30);
  CHECK(m.config.kv_heads == 3);
  CHECK(m.config.rope_interleaved);
  CHECK(m.config.end_ids == std::vector<int32_t>{2});
  check_graph(m.graph);
}

TEST_CASE("every original rdrr directory opens") {
  for (const char* name : {"gemma3-early", "gemma3-f16", "gemma3-q4k", "llama-f16", "mixtral-early"}) {
    CAPTURE(name);
    check_graph(take(model::open_model(golden("rdrr-original/" + std::string(name)))).graph);
  }
}

TEST_CASE("llama3 frequency factors divide the inverse frequencies") {
  const TempDir folder;
  GgufWriter writer = tiny_llama();
  std::vector<float> factors{1, 1, 2, 4, 8, 8, 8, 8};
  writer.add("rope_freqs.weight", DType::kF32, {8}, factors);
  writer.write(folder.file("m.gguf"));
  const auto m = take(model::open_model(folder.file("m.gguf")));
  for (size_t i = 0; i < 8; ++i)
    CHECK(m.graph.rope_tables[0].inv_freq[i] ==
          doctest::Approx(std::pow(10000.0, -2.0 * static_cast<double>(i) / 16) / factors[i]));
}

TEST_CASE("linear scaling stretches positions, an untied head is its own weight") {
  const TempDir folder;
  GgufWriter writer = tiny_llama({.tied_head = false});
  writer.set_string("llama.rope.scaling.type", "linear");
  writer.set("llama.rope.scaling.factor", 4.0f);
  writer.write(folder.file("m.gguf"));
  const auto m = take(model::open_model(folder.file("m.gguf")));
  CHECK(m.graph.rope_tables[0].inv_freq[0] == doctest::Approx(0.25));
  CHECK_FALSE(m.config.tied_head);
  const graph::Node& head = m.graph.nodes.back();
  CHECK(m.graph.weights[head.weights[0]].name == "output.weight");
  check_graph(m.graph);
}

}  // namespace
}  // namespace doppler::test
