#include "tokenizer/end_tokens.h"

#include <algorithm>
#include <array>

namespace doppler {

constexpr std::array<std::string_view, 8> kEndNames = {"<|eot_id|>",    "<|im_end|>",    "<|end|>",
                                                       "<end_of_turn>", "<|endoftext|>", "<|end_of_text|>",
                                                       "<|eom_id|>",    "<EOT>"};

void set_end_ids(VocabData& vocab, std::initializer_list<std::optional<int32_t>> also) {
  std::vector<int32_t>& out = vocab.end_ids;
  out.clear();
  const auto add = [&](int32_t id) {
    if (std::find(out.begin(), out.end(), id) == out.end()) out.push_back(id);
  };
  if (vocab.eos) add(*vocab.eos);
  for (const auto& id : also)
    if (id) add(*id);
  for (const AddedToken& token : vocab.added) {
    const auto id = static_cast<size_t>(token.id);
    const bool named = std::find(kEndNames.begin(), kEndNames.end(), vocab.tokens[id]) != kEndNames.end();
    if (named && vocab.types[id] == TokenType::kControl) add(token.id);
  }
}

}  // namespace doppler
