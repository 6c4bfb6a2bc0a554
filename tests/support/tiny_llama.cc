#include "support/tiny_llama.h"

#include <cmath>
#include <random>
#include <string_view>
#include <vector>

namespace doppler::test {
namespace {

enum TokenType : int32_t { kNormal = 1, kUnknown = 2, kControl = 3, kByte = 6 };

/// Numbers around `mean` with the given spread, the same on every standard library.
std::vector<float> random_floats(std::mt19937& random, size_t n, float mean, float deviation) {
  std::vector<float> values(n);
  for (float& v : values) {
    double sum = 0;  // 12 uniform numbers: variance 1
    for (int i = 0; i < 12; ++i) sum += static_cast<double>(random()) / 4294967296.0;
    v = mean + deviation * static_cast<float>(sum - 6);
  }
  return values;
}

std::string utf8(uint32_t code) {  // below 0x800
  if (code < 0x80) return {static_cast<char>(code)};
  return {static_cast<char>(0xc0 | code >> 6), static_cast<char>(0x80 | (code & 63))};
}

/// The letters byte-level BPE writes bytes with: printable bytes as themselves, the rest from U+0100 on.
std::vector<std::string> byte_letters() {
  std::vector<std::string> letters(256);
  uint32_t next = 256;
  for (uint32_t b = 0; b < 256; ++b) {
    const bool shown = (b >= 33 && b <= 126) || (b >= 161 && b <= 172) || b >= 174;
    letters[b] = utf8(shown ? b : next++);
  }
  return letters;
}

// "\u0120" is the letter of the space.
constexpr std::string_view kMerges[] = {
    "\u0120 t", "\u0120 a", "h e",        "i n",      "r e",    "o n",        "\u0120t he", "e r",
    "\u0120 s", "a t",      "\u0120 w",   "\u0120 o", "e n",    "\u0120 c",   "i t",        "i s",
    "a n",      "o r",      "e s",        "\u0120 b", "e d",    "\u0120 f",   "in g",       "\u0120 p",
    "o u",      "an d",     "\u0120 and", "a l",      "a r",    "\u0120 m",   "\u0120o f",  "\u0120 in",
    "\u0120 d", "\u0120 h", "l l",        "he ll",    "hell o", "\u0120w or", "l d",        "\u0120wor ld"};

uint32_t set_byte_level(GgufWriter& g) {
  std::vector<std::string> tokens{"<|endoftext|>", "<|im_start|>", "<|im_end|>"};
  std::vector<int32_t> types(tokens.size(), kControl);
  for (const std::string& letter : byte_letters()) tokens.push_back(letter);
  std::vector<std::string> merges;
  for (const std::string_view merge : kMerges) {
    merges.emplace_back(merge);
    const size_t space = merge.find(' ');
    tokens.push_back(std::string(merge.substr(0, space)) + std::string(merge.substr(space + 1)));
  }
  types.resize(tokens.size(), kNormal);
  g.set_string("tokenizer.ggml.model", "gpt2");
  g.set_string("tokenizer.ggml.pre", "smollm");
  g.set_strings("tokenizer.ggml.tokens", tokens);
  g.set_array("tokenizer.ggml.token_type", types);
  g.set_strings("tokenizer.ggml.merges", merges);
  g.set("tokenizer.ggml.bos_token_id", uint32_t{1});
  g.set("tokenizer.ggml.eos_token_id", uint32_t{2});
  g.set("tokenizer.ggml.add_bos_token", false);
  g.set("tokenizer.ggml.add_space_prefix", false);
  g.set_string(
      "tokenizer.chat_template",
      "{% for message in messages %}{{'<|im_start|>' + message['role'] + '\n' + message['content'] + "
      "'<|im_end|>' + '\n'}}{% endfor %}{% if add_generation_prompt %}{{ '<|im_start|>assistant\n' }}"
      "{% endif %}");
  return static_cast<uint32_t>(tokens.size());
}

uint32_t set_sentence_piece(GgufWriter& g) {
  std::vector<std::string> tokens{"<unk>", "<s>", "</s>"};
  std::vector<int32_t> types{kUnknown, kControl, kControl};
  std::vector<float> scores{0, 0, 0};
  for (int b = 0; b < 256; ++b) {
    constexpr char kDigits[] = "0123456789ABCDEF";
    tokens.push_back(std::string("<0x") + kDigits[b >> 4] + kDigits[b & 15] + ">");
    types.push_back(kByte);
    scores.push_back(0);
  }
  // "\u2581" stands for the space; a higher score merges earlier.
  std::vector<std::string> pieces{"\u2581t", "he", "\u2581the", "in",    "er",
                                  "\u2581a", "ll", "hell",      "hello", "\u2581hello"};
  for (char c = 'a'; c <= 'z'; ++c) pieces.emplace_back(1, c);
  pieces.emplace_back("\u2581");
  for (const std::string& piece : pieces) {
    scores.push_back(-static_cast<float>(scores.size() - 259));
    tokens.push_back(piece);
    types.push_back(kNormal);
  }
  g.set_string("tokenizer.ggml.model", "llama");
  g.set_strings("tokenizer.ggml.tokens", tokens);
  g.set_array("tokenizer.ggml.scores", scores);
  g.set_array("tokenizer.ggml.token_type", types);
  g.set("tokenizer.ggml.unknown_token_id", uint32_t{0});
  g.set("tokenizer.ggml.bos_token_id", uint32_t{1});
  g.set("tokenizer.ggml.eos_token_id", uint32_t{2});
  return static_cast<uint32_t>(tokens.size());
}

}  // namespace

GgufWriter tiny_llama(const TinyLlama& options) {
  const uint32_t block = dtype_info(options.dtype).block_elems;
  const uint32_t hidden = options.hidden != 0 ? options.hidden : (block > 64 ? block : 64);
  const uint32_t ffn = options.ffn != 0 ? options.ffn : 2 * hidden;
  const uint32_t head_dim = hidden / options.heads;

  GgufWriter g;
  g.set_string("general.architecture", "llama");
  g.set_string("general.name", "tiny llama");
  g.set("llama.block_count", options.layers);
  g.set("llama.context_length", options.context);
  g.set("llama.embedding_length", hidden);
  g.set("llama.feed_forward_length", ffn);
  g.set("llama.attention.head_count", options.heads);
  g.set("llama.attention.head_count_kv", options.kv_heads);
  g.set("llama.rope.dimension_count", head_dim);
  g.set("llama.rope.freq_base", 10000.0f);
  g.set("llama.attention.layer_norm_rms_epsilon", 1e-5f);
  const uint32_t vocab =
      options.tokenizer == TinyTokenizer::kByteLevel ? set_byte_level(g) : set_sentence_piece(g);
  g.set("llama.vocab_size", vocab);

  std::mt19937 random(options.seed);
  const auto matrix = [&](const std::string& name, uint64_t rows, uint64_t columns, float gain) {
    const float deviation = gain / std::sqrt(static_cast<float>(columns));
    g.add(name, options.dtype, {rows, columns}, random_floats(random, rows * columns, 0, deviation));
  };
  const auto norm = [&](const std::string& name) {
    g.add(name, DType::kF32, {hidden}, random_floats(random, hidden, 1, 0.1f));
  };
  const uint64_t kv_width = static_cast<uint64_t>(options.kv_heads) * head_dim;
  // Entries of size 0.3: small beside what the layers add, so that a wrong layer shows in the logits.
  matrix("token_embd.weight", vocab, hidden, 0.3f * std::sqrt(static_cast<float>(hidden)));
  for (uint32_t layer = 0; layer < options.layers; ++layer) {
    const std::string at = "blk." + std::to_string(layer) + ".";
    norm(at + "attn_norm.weight");
    matrix(at + "attn_q.weight", hidden, hidden, 1);
    matrix(at + "attn_k.weight", kv_width, hidden, 1);
    matrix(at + "attn_v.weight", kv_width, hidden, 1);
    matrix(at + "attn_output.weight", hidden, hidden, 1);
    norm(at + "ffn_norm.weight");
    matrix(at + "ffn_gate.weight", ffn, hidden, 1);
    matrix(at + "ffn_up.weight", ffn, hidden, 1);
    matrix(at + "ffn_down.weight", hidden, ffn, 1);
  }
  norm("output_norm.weight");
  if (!options.tied_head) matrix("output.weight", vocab, hidden, 1);
  return g;
}

void tiny_llama_gguf(const std::string& path, const TinyLlama& options) { tiny_llama(options).write(path); }

}  // namespace doppler::test
