#include "tokenizer/token_text.h"

#include <array>

#include "tokenizer/byte_letters.h"
#include "tokenizer/byte_tokens.h"

namespace doppler {
namespace {

constexpr std::string_view kMetaspace = "\xe2\x96\x81";  // U+2581

void replace_all(std::string& text, std::string_view from, std::string_view to) {
  for (size_t hit = text.find(from); hit != std::string::npos; hit = text.find(from, hit + to.size()))
    text.replace(hit, from.size(), to);
}

// English punctuation closes up, in this order.
void clean_up(std::string& text) {
  constexpr std::array<std::array<std::string_view, 2>, 11> kRules = {{{" .", "."},
                                                                       {" ?", "?"},
                                                                       {" !", "!"},
                                                                       {" ,", ","},
                                                                       {" ' ", "'"},
                                                                       {" n't", "n't"},
                                                                       {" 'm", "'m"},
                                                                       {" do not", " don't"},
                                                                       {" 's", "'s"},
                                                                       {" 've", "'ve"},
                                                                       {" 're", "'re"}}};
  for (const auto& [from, to] : kRules) replace_all(text, from, to);
}

}  // namespace

std::string text_of_token(const VocabData& vocab, int32_t id, bool first) {
  const std::string& text = vocab.tokens[static_cast<size_t>(id)];
  if (text.empty()) return {};
  const TokenType type = vocab.types[static_cast<size_t>(id)];
  const DecoderRules& rules = vocab.decoder;
  std::string out = text;
  if (vocab.kind == VocabKind::kByteLevelBpe) {
    if (type != TokenType::kNormal && type != TokenType::kUnused) return out;
    const bool ends_word = !rules.word_end.empty() && out.ends_with(rules.word_end);
    if (ends_word) out.resize(out.size() - rules.word_end.size());
    out = byte_letters::bytes_of(out).value_or(out);
    if (ends_word) out += ' ';
    return out;
  }
  if (type == TokenType::kByte && rules.byte_fallback) {
    const int byte = byte_token_value(text);
    return byte < 0 ? out : std::string(1, static_cast<char>(byte));
  }
  if (rules.word_pieces) {
    if (!first && !vocab.subword_prefix.empty() && out.starts_with(vocab.subword_prefix)) {
      out.erase(0, vocab.subword_prefix.size());
    } else if (!first) {
      out.insert(0, 1, ' ');
    }
    if (rules.cleanup) clean_up(out);
    return out;
  }
  if (!rules.word_end.empty()) replace_all(out, rules.word_end, " ");
  if (rules.metaspace && type != TokenType::kControl) replace_all(out, kMetaspace, " ");
  return out;
}

}  // namespace doppler
