#pragma once
// What a token stands for in decoded text.
#include <cstdint>
#include <string>

#include "tokenizer/vocab.h"

namespace doppler {

/// The bytes of token `id` (which must be in the vocabulary). `first` says that a whole text starts with it,
/// which matters for word pieces alone: no space goes before it.
std::string text_of_token(const VocabData& vocab, int32_t id, bool first = false);

}  // namespace doppler
