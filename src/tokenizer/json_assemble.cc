// Puts the parts of a tokenizer.json together: added tokens into the vocabulary, special tokens by name.
#include <algorithm>

#include "tokenizer/json_components.h"
#include "tokenizer/token_index.h"
#include "tokenizer/utf8.h"

namespace doppler::tokenizer_json {

Result<void> place_added(const std::vector<AddedTokenText>& added, VocabData& vocab) {
  for (const auto& [token, content, special] : added) {
    const auto id = static_cast<size_t>(token.id);
    if (content.empty()) continue;
    if (id >= vocab.tokens.size()) {
      if (id > vocab.tokens.size() + added.size() + 4096)
        return fail(ErrorCode::kBadFile,
                    "[tokenizer.json] the added token '{}' has the id {}, the vocabulary has {}", content, id,
                    vocab.tokens.size());
      vocab.tokens.resize(id + 1);
      vocab.types.resize(id + 1, TokenType::kNormal);
      if (vocab.kind == VocabKind::kUnigram) vocab.scores.resize(id + 1, 0);
    }
    if (!vocab.tokens[id].empty() && vocab.tokens[id] != content)
      return fail(ErrorCode::kBadFile, "[tokenizer.json] the added token '{}' has the id {} of '{}'", content,
                  id, vocab.tokens[id]);
    vocab.tokens[id] = content;
    vocab.types[id] = special ? TokenType::kControl : TokenType::kUserDefined;
    vocab.added.push_back(token);
  }
  std::sort(vocab.added.begin(), vocab.added.end(),
            [](const AddedToken& a, const AddedToken& b) { return a.id < b.id; });
  const auto same = [](const AddedToken& a, const AddedToken& b) { return a.id == b.id; };
  vocab.added.erase(std::unique(vocab.added.begin(), vocab.added.end(), same), vocab.added.end());
  return {};
}

Result<void> apply_config(std::string_view text, const std::string& unk_token, VocabData& vocab) {
  DOPPLER_TRY(const auto config, read_tokenizer_config(text));
  const TokenIndex index(vocab.tokens);
  if (const auto twice = index.duplicate())
    return fail(ErrorCode::kBadFile, "[tokenizer.json] every token wanted once, {} and {} are both '{}'",
                twice->first, twice->second, vocab.tokens[static_cast<size_t>(twice->first)]);
  const auto id_of = [&](const std::string& token) {
    const int32_t id = index.find(token);
    return id < 0 ? std::nullopt : std::optional<int32_t>(id);
  };
  vocab.eos = id_of(config.eos);
  vocab.pad = id_of(config.pad);
  vocab.bos = id_of(config.bos);
  vocab.unk = id_of(unk_token.empty() ? config.unk : unk_token);
  // These classes build their template from the flags and do not look at the file's own.
  const std::string& name = config.tokenizer_class;
  const bool by_flags =
      name.starts_with("Llama") || name.starts_with("Gemma") || name.starts_with("CodeLlama");
  if (by_flags && config.add_bos) {
    vocab.prefix.clear();
    if (*config.add_bos && vocab.bos) vocab.prefix = {*vocab.bos};
  }
  if (by_flags && config.add_eos) {
    vocab.suffix.clear();
    if (*config.add_eos && vocab.eos) vocab.suffix = {*vocab.eos};
  }
  if (!vocab.bos && vocab.prefix.size() == 1) vocab.bos = vocab.prefix[0];
  vocab.add_bos = vocab.bos && !vocab.prefix.empty() && vocab.prefix[0] == *vocab.bos;
  vocab.add_eos = vocab.eos && !vocab.suffix.empty() && vocab.suffix.back() == *vocab.eos;
  return {};
}

Result<void> set_kind(const DecoderPart& decoder, VocabData& vocab) {
  const bool byte_level =
      std::any_of(vocab.pre_tokenizer.begin(), vocab.pre_tokenizer.end(),
                  [](const PreTokenizerStep& step) { return step.op == PreTokenizerStep::Op::kByteLevel; });
  if (byte_level != decoder.byte_level)
    return fail(ErrorCode::kUnsupported,
                "[tokenizer.json] ByteLevel wanted in both pre_tokenizer and decoder or in neither");
  if (byte_level && vocab.kind != VocabKind::kFallbackBpe)
    return fail(ErrorCode::kUnsupported, "[tokenizer.json] ByteLevel wanted with a BPE model only");
  if (byte_level) vocab.kind = VocabKind::kByteLevelBpe;
  const bool word_pieces = decoder.rules.word_pieces;
  if (word_pieces && (vocab.kind != VocabKind::kWordPiece || decoder.subword_prefix != vocab.subword_prefix))
    return fail(
        ErrorCode::kUnsupported,
        "[tokenizer.json] a WordPiece decoder wanted with a WordPiece model of the same prefix, got '{}' "
        "and '{}'",
        utf8::sanitize(decoder.subword_prefix.substr(0, 32)),
        utf8::sanitize(vocab.subword_prefix.substr(0, 32)));
  return {};
}

}  // namespace doppler::tokenizer_json
