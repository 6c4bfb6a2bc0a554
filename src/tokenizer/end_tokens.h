#pragma once
// Which tokens end a generation.
#include <initializer_list>
#include <optional>

#include "tokenizer/vocab.h"

namespace doppler {

/// Fills vocab.end_ids: eos, then `also` (end of turn, end of message), then control tokens whose spelling
/// says that a turn or text ends: files often name only one of several.
void set_end_ids(VocabData& vocab, std::initializer_list<std::optional<int32_t>> also = {});

}  // namespace doppler
