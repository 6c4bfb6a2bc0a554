#include "support/gguf_faults.h"

#include <array>
#include <cstring>
#include <functional>
#include <limits>

#include "support/tiny_llama.h"

namespace doppler::test {
namespace {

using Bytes = std::vector<std::byte>;

template <class T>
Bytes patched(Bytes file, size_t at, T value) {
  std::memcpy(file.data() + at, &value, sizeof value);
  return file;
}

constexpr size_t kVersionAt = 4, kTensorCountAt = 8, kPairCountAt = 16;
constexpr const char* kVictim = "blk.0.attn_q.weight";  // the tensor that faults are put into

class Collector {
 public:
  void raw(const std::string& name, Bytes bytes) { faults.push_back({name, std::move(bytes), true}); }
  /// A fault that the container's reader must see.
  void container(const std::string& name, const std::function<void(GgufWriter&)>& breaks) {
    add(name, breaks, {}, true);
  }
  /// A valid container around a model that cannot run.
  void model(const std::string& name, const std::function<void(GgufWriter&)>& breaks,
             const TinyLlama& options = {}) {
    add(name, breaks, options, false);
  }
  std::vector<Fault> faults;

 private:
  void add(const std::string& name, const std::function<void(GgufWriter&)>& breaks, const TinyLlama& options,
           bool container) {
    GgufWriter g = tiny_llama(options);
    breaks(g);
    faults.push_back({name, g.bytes(), container});
  }
};

void add_header_faults(Collector& out) {
  const Bytes valid = tiny_llama().bytes();
  out.raw("empty", {});
  out.raw("magic-only", Bytes(valid.begin(), valid.begin() + 4));
  out.raw("bad-magic", patched(valid, 2, std::array<char, 2>{'M', 'L'}));
  for (const uint32_t version : {0u, 1u, 99u})
    out.raw("version-" + std::to_string(version), patched(valid, kVersionAt, version));
  out.raw("big-endian", patched(valid, kVersionAt, uint32_t{0x03000000}));
  out.raw("huge-n-tensors", patched(valid, kTensorCountAt, uint64_t{1} << 62));
  out.raw("neg-n-kv", patched(valid, kPairCountAt, ~uint64_t{0}));
  out.raw("one-tensor-too-many", patched(valid, kTensorCountAt, uint64_t{tiny_llama().tensors.size() + 1}));
  out.raw("one-pair-too-many", patched(valid, kPairCountAt, uint64_t{tiny_llama().pairs.size() + 1}));
  // The header and one key whose length says 1 GiB.
  Bytes cut = patched(patched(Bytes(valid.begin(), valid.begin() + 33), kTensorCountAt, uint64_t{0}),
                      kPairCountAt, uint64_t{1});
  out.raw("string-1GiB-short-file", patched(cut, 24, uint64_t{1} << 30));
  out.raw("key-1GiB", patched(valid, 24, uint64_t{1} << 30));
  out.raw("data-cut-short", Bytes(valid.begin(), valid.end() - 64));
}

void add_metadata_faults(Collector& out) {
  const auto with_alignment = [](uint32_t value) {
    return [value](GgufWriter& g) { g.set("general.alignment", value); };
  };
  out.container("alignment-0", with_alignment(0));
  out.container("alignment-3", with_alignment(3));
  out.container("alignment-2GiB", with_alignment(uint32_t{1} << 31));
  out.container("alignment-string", [](GgufWriter& g) { g.set_string("general.alignment", "32"); });
  out.container("bad-kv-type", [](GgufWriter& g) { g.put("a", 77, Bytes(8)); });
  out.container("bool-2", [](GgufWriter& g) {
    g.put("a", static_cast<uint32_t>(gguf::ValueType::kBool), {std::byte{2}});
  });
  out.container("bool-2-in-array", [](GgufWriter& g) {
    g.put_array("a", static_cast<uint32_t>(gguf::ValueType::kBool), 2, {std::byte{1}, std::byte{2}});
  });
  out.container("nested-array", [](GgufWriter& g) {
    g.put_array("a", static_cast<uint32_t>(gguf::ValueType::kArray), 1, Bytes(16));
  });
  out.container("bad-array-type", [](GgufWriter& g) { g.put_array("a", 77, 1, Bytes(8)); });
  out.container("array-2-to-60", [](GgufWriter& g) {
    g.put_array("a", static_cast<uint32_t>(gguf::ValueType::kU64), uint64_t{1} << 60, Bytes(8));
  });
  out.container("array-2-to-61-wraps", [](GgufWriter& g) {
    g.put_array("a", static_cast<uint32_t>(gguf::ValueType::kF64), (uint64_t{1} << 61) + 1, Bytes(8));
  });
  out.container("strings-2-to-40", [](GgufWriter& g) {
    g.put_array("a", static_cast<uint32_t>(gguf::ValueType::kString), uint64_t{1} << 40, Bytes(8));
  });
  out.container("dup-key", [](GgufWriter& g) { g.pairs.push_back(g.pairs.front()); });
  out.container("empty-key", [](GgufWriter& g) { g.set("", 1u); });
  out.container("key-invalid-utf8", [](GgufWriter& g) { g.set("a\xff", 1u); });
  out.container("key-too-long", [](GgufWriter& g) { g.set(std::string(70000, 'k'), 1u); });
  out.container("token-invalid-utf8", [](GgufWriter& g) {
    g.set_strings("tokenizer.ggml.tokens", std::vector<std::string>(299, "\xff\xfe"));
  });
  out.container("split-2", [](GgufWriter& g) { g.set("split.count", uint16_t{2}); });
}

void add_tensor_faults(Collector& out) {
  const auto on_victim = [&](const std::string& name,
                             const std::function<void(GgufWriter::Tensor&)>& breaks) {
    out.container(name, [&](GgufWriter& g) { breaks(g.tensor(kVictim)); });
  };
  using Tensor = GgufWriter::Tensor;
  on_victim("dims-0", [](Tensor& t) { t.shape = {}; });
  on_victim("dims-5", [](Tensor& t) { t.shape = {1, 1, 1, 64, 64}; });
  on_victim("dims-huge-n", [](Tensor& t) { t.shape.assign(1000, 1); });
  on_victim("dim-zero", [](Tensor& t) { t.shape = {64, 0}; });
  on_victim("dims-neg", [](Tensor& t) { t.shape = {64, ~uint64_t{0}}; });
  on_victim("dims-overflow", [](Tensor& t) { t.shape = {uint64_t{1} << 32, uint64_t{1} << 32}; });
  on_victim("bytes-overflow", [](Tensor& t) { t.shape = {uint64_t{1} << 31, uint64_t{1} << 31}; });
  on_victim("type-out-of-range", [](Tensor& t) { t.type = 999; });
  on_victim("row-not-of-whole-blocks", [](Tensor& t) {
    t.type = 2;  // Q4_0
    t.shape = {32, 48};
  });
  on_victim("name-too-long", [](Tensor& t) { t.name = std::string(200, 'n'); });
  on_victim("name-empty", [](Tensor& t) { t.name.clear(); });
  on_victim("name-invalid-utf8", [](Tensor& t) { t.name = "blk.\xc3("; });
  on_victim("offset-unaligned", [](Tensor& t) { t.offset = 7; });
  on_victim("offset-beyond-eof", [](Tensor& t) { t.offset = uint64_t{1} << 40; });
  on_victim("offset-wraps", [](Tensor& t) { t.offset = ~uint64_t{0} - 31; });
  on_victim("overlap", [](Tensor& t) { t.offset = 32; });
  out.container("dup-tensor", [](GgufWriter& g) { g.tensors.push_back(g.tensor(kVictim)); });
}

void add_model_faults(Collector& out) {
  const auto number = [&](const std::string& name, const std::string& key, uint32_t value) {
    out.model(name, [&](GgufWriter& g) { g.set(key, value); });
  };
  out.model("no-arch", [](GgufWriter& g) { g.erase("general.architecture"); });
  out.model("unknown-arch", [](GgufWriter& g) { g.set_string("general.architecture", "no such\nfamily"); });
  number("block-count-100000", "llama.block_count", 100000);
  number("block-count-0", "llama.block_count", 0);
  number("block-count-3", "llama.block_count", 3);
  number("head-count-0", "llama.attention.head_count", 0);
  number("head-count-5", "llama.attention.head_count", 5);
  number("kv-heads-3", "llama.attention.head_count_kv", 3);
  number("kv-heads-0", "llama.attention.head_count_kv", 0);
  number("embedding-0", "llama.embedding_length", 0);
  number("embedding-128", "llama.embedding_length", 128);
  number("ffn-0", "llama.feed_forward_length", 0);
  number("ffn-4-billion", "llama.feed_forward_length", std::numeric_limits<uint32_t>::max());
  number("context-0", "llama.context_length", 0);
  number("rope-dimensions-odd", "llama.rope.dimension_count", 15);
  number("rope-dimensions-above-head", "llama.rope.dimension_count", 32);
  number("vocab-size-differs", "llama.vocab_size", 7);
  number("bos-out-of-range", "tokenizer.ggml.bos_token_id", 1000000);
  number("eos-out-of-range", "tokenizer.ggml.eos_token_id", 1000000);
  out.model("head-count-string", [](GgufWriter& g) { g.set_string("llama.attention.head_count", "4"); });
  out.model("head-count-negative", [](GgufWriter& g) { g.set("llama.attention.head_count", int32_t{-4}); });
  out.model("epsilon-nan", [](GgufWriter& g) {
    g.set("llama.attention.layer_norm_rms_epsilon", std::numeric_limits<float>::quiet_NaN());
  });
  out.model("epsilon-missing", [](GgufWriter& g) { g.erase("llama.attention.layer_norm_rms_epsilon"); });
  out.model("rope-base-0", [](GgufWriter& g) { g.set("llama.rope.freq_base", 0.0f); });

  const TinyLlama sentence_piece{.tokenizer = TinyTokenizer::kSentencePiece};
  out.model(
      "scores-u8", [](GgufWriter& g) { g.set_array("tokenizer.ggml.scores", std::vector<uint8_t>(296)); },
      sentence_piece);
  out.model(
      "tokens-vs-scores-len",
      [](GgufWriter& g) { g.set_array("tokenizer.ggml.scores", std::vector<float>(1)); }, sentence_piece);
  out.model("token-types-short",
            [](GgufWriter& g) { g.set_array("tokenizer.ggml.token_type", std::vector<int32_t>(1, 1)); });
  out.model("no-vocab", [](GgufWriter& g) {
    std::erase_if(g.pairs, [](const GgufWriter::Pair& pair) { return pair.key.starts_with("tokenizer."); });
  });
  out.model("unknown-tokenizer",
            [](GgufWriter& g) { g.set_string("tokenizer.ggml.model", "no-such-model"); });
  out.model("tokens-not-strings",
            [](GgufWriter& g) { g.set_array("tokenizer.ggml.tokens", std::vector<uint32_t>(299)); });
  out.model("merge-without-space",
            [](GgufWriter& g) { g.set_strings("tokenizer.ggml.merges", {"nospace"}); });

  out.model("tensor-missing", [](GgufWriter& g) { g.tensor(kVictim).name = "other"; });
  out.model("embedding-missing", [](GgufWriter& g) { g.tensor("token_embd.weight").name = "other"; });
  out.model("no-tensors", [](GgufWriter& g) { g.tensors.clear(); });
  out.model("tensor-transposed", [](GgufWriter& g) { g.tensor("blk.1.ffn_down.weight").shape = {128, 64}; });
  out.model("tensor-one-row", [](GgufWriter& g) { g.tensor(kVictim).shape = {64 * 64}; });
  out.model("tensor-3-dimensions", [](GgufWriter& g) { g.tensor(kVictim).shape = {2, 32, 64}; });
  out.model("norm-too-short", [](GgufWriter& g) { g.tensor("output_norm.weight").shape = {32}; });
  out.model("tensor-of-integers",
            [](GgufWriter& g) { g.tensor(kVictim).type = 26; });  // I32: same size as F32
}

}  // namespace

std::vector<Fault> gguf_faults() {
  Collector out;
  add_header_faults(out);
  add_metadata_faults(out);
  add_tensor_faults(out);
  add_model_faults(out);
  return std::move(out.faults);
}

}  // namespace doppler::test
