#pragma once
// A LLaMA small enough to make in a test, with random weights and a working tokenizer.
#include <cstdint>
#include <string>

#include "support/gguf_writer.h"

namespace doppler::test {

enum class TinyTokenizer {
  kByteLevel,      // 'gpt2' with the smollm pre-tokenizer: 3 control tokens, 256 bytes, merges
  kSentencePiece,  // 'llama': <unk>, <s>, </s>, 256 byte tokens, pieces with scores
};

struct TinyLlama {
  DType dtype = DType::kF32;  // of every matrix; norms are F32
  uint32_t layers = 2;
  uint32_t hidden = 0;  // 0: 64, or 256 for types with blocks of 256
  uint32_t ffn = 0;     // 0: twice hidden
  uint32_t heads = 4;
  uint32_t kv_heads = 2;
  uint32_t context = 256;
  bool tied_head = false;  // true: random weights then tend to repeat the last token
  TinyTokenizer tokenizer = TinyTokenizer::kByteLevel;
  uint32_t seed = 1;
};

/// The model as a writer, so that a test may change fields before writing it.
GgufWriter tiny_llama(const TinyLlama& options = {});

/// Writes a valid model that the engine runs.
void tiny_llama_gguf(const std::string& path, const TinyLlama& options = {});

}  // namespace doppler::test
