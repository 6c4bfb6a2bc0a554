#pragma once
// GGUF names its pre-tokenizers; this is what the names mean.
#include <optional>
#include <string_view>
#include <vector>

#include "tokenizer/vocab.h"

namespace doppler {

struct PreTokenizerRecipe {
  std::vector<PreTokenizerStep> steps;
  bool ignore_merges = false;
  bool add_bos = false;  // where the file does not say
};

/// The steps behind tokenizer.ggml.pre ("gpt-2", "smollm", "llama-bpe", ...), or nothing if the name is not
/// known.
std::optional<PreTokenizerRecipe> pre_tokenizer_by_name(std::string_view name);

}  // namespace doppler
