#include <algorithm>
#include <cmath>

#include "base/log.h"
#include "tokenizer/byte_tokens.h"
#include "tokenizer/end_tokens.h"
#include "tokenizer/pre_names.h"
#include "tokenizer/token_index.h"
#include "tokenizer/utf8.h"
#include "tokenizer/vocab.h"

namespace doppler {
namespace {

constexpr std::string_view kMetaspace = "\xe2\x96\x81";

Result<std::optional<int32_t>> checked_id(std::optional<uint64_t> id, size_t count, const char* key) {
  if (!id) return std::optional<int32_t>();
  if (*id >= count)
    return fail(ErrorCode::kBadFile, "[tokenizer] tokenizer.ggml.{} wanted below {}, got {}", key, count,
                *id);
  return std::optional<int32_t>(static_cast<int32_t>(*id));
}

Result<void> copy_tokens(const GgufVocabView& view, VocabData& vocab) {
  if (view.tokens.empty())
    return fail(ErrorCode::kBadFile, "[tokenizer] tokenizer.ggml.tokens wanted, the file has no vocabulary");
  if (view.tokens.size() > INT32_MAX)
    return fail(ErrorCode::kBadFile, "[tokenizer] at most 2^31 - 1 tokens wanted, got {}",
                view.tokens.size());
  const auto same_length = [&](size_t n) { return n == 0 || n == view.tokens.size(); };
  if (!same_length(view.types.size()))
    return fail(ErrorCode::kBadFile, "[tokenizer] {} tokens, but {} token types", view.tokens.size(),
                view.types.size());
  if (!same_length(view.scores.size()))
    return fail(ErrorCode::kBadFile, "[tokenizer] {} tokens, but {} scores", view.tokens.size(),
                view.scores.size());
  for (size_t id = 0; id < view.tokens.size(); ++id) {
    if (!utf8::valid(view.tokens[id]))
      return fail(ErrorCode::kBadFile, "[tokenizer] token {} wanted as UTF-8, its {} bytes are not", id,
                  view.tokens[id].size());
  }
  vocab.tokens.assign(view.tokens.begin(), view.tokens.end());
  const TokenIndex index(vocab.tokens);
  if (const auto twice = index.duplicate())
    return fail(ErrorCode::kBadFile, "[tokenizer] every token wanted once, {} and {} are both '{}'",
                twice->first, twice->second, vocab.tokens[static_cast<size_t>(twice->first)]);
  return {};
}

Result<void> copy_types(const GgufVocabView& view, VocabData& vocab) {
  if (!view.types.empty()) {
    vocab.types.reserve(view.types.size());
    for (size_t id = 0; id < view.types.size(); ++id) {
      const int64_t type = view.types[id];
      if (type < 0 || type > 6)
        return fail(ErrorCode::kBadFile, "[tokenizer] token {}'s type wanted in 1..6, got {}", id, type);
      vocab.types.push_back(type == 0 ? TokenType::kNormal : static_cast<TokenType>(type));
    }
    return {};
  }
  vocab.types.assign(vocab.tokens.size(), TokenType::kNormal);
  for (const auto& id : {vocab.bos, vocab.eos, vocab.pad})
    if (id) vocab.types[static_cast<size_t>(*id)] = TokenType::kControl;
  if (vocab.unk) vocab.types[static_cast<size_t>(*vocab.unk)] = TokenType::kUnknown;
  if (vocab.kind == VocabKind::kScoreBpe) {
    for (size_t id = 0; id < vocab.tokens.size(); ++id)
      if (byte_token_value(vocab.tokens[id]) >= 0) vocab.types[id] = TokenType::kByte;
  }
  return {};
}

Result<void> read_merges(const GgufVocabView& view, VocabData& vocab) {
  if (view.merges.empty())
    return fail(ErrorCode::kBadFile,
                "[tokenizer] tokenizer.ggml.merges wanted for model gpt2, the file has none");
  const TokenIndex index(vocab.tokens);
  vocab.merges.reserve(view.merges.size());
  for (size_t i = 0; i < view.merges.size(); ++i) {
    const std::string_view merge = view.merges[i];
    // Searched from the second byte on, so that a token may start with a space.
    const size_t space = merge.find(' ', 1);
    if (space == std::string_view::npos)
      return fail(ErrorCode::kBadFile, "[tokenizer] merge {} wanted as 'left right', got no space in it", i);
    const int32_t left = index.find(merge.substr(0, space)), right = index.find(merge.substr(space + 1));
    if (left < 0 || right < 0)
      return fail(ErrorCode::kBadFile, "[tokenizer] merge {} joins '{}', which is not two tokens", i,
                  utf8::sanitize(merge.substr(0, 80)));
    vocab.merges.push_back({left, right});
  }
  return {};
}

// A BERT text stands between [CLS] and [SEP], which files name as such or as BOS and EOS, or by spelling
// alone.
void set_bert_special(std::optional<int32_t> cls, std::optional<int32_t> sep, VocabData& vocab) {
  const TokenIndex index(vocab.tokens);
  const auto named = [&](const char* text) {
    const int32_t id = index.find(text);
    return id < 0 ? std::nullopt : std::optional<int32_t>(id);
  };
  if (cls || !vocab.bos) vocab.bos = cls ? cls : named("[CLS]");
  if (sep || !vocab.eos) vocab.eos = sep ? sep : named("[SEP]");
  if (!vocab.unk) vocab.unk = named("[UNK]");
  if (!vocab.pad) vocab.pad = named("[PAD]");
}

void set_metaspace_rules(const GgufVocabView& view, VocabData& vocab) {
  vocab.add_space_prefix = view.add_space_prefix.value_or(true);
  if (vocab.add_space_prefix)
    vocab.normalizer.push_back({NormalizerStep::Op::kPrepend, {}, std::string(kMetaspace)});
  vocab.normalizer.push_back({NormalizerStep::Op::kReplace, " ", std::string(kMetaspace)});
  vocab.byte_fallback =
      std::find(vocab.types.begin(), vocab.types.end(), TokenType::kByte) != vocab.types.end();
  vocab.fuse_unknown = true;
  vocab.decoder = {
      .metaspace = true, .byte_fallback = vocab.byte_fallback, .strip_start = vocab.add_space_prefix};
}

// GGUF files spell WordPiece the other way round: words start with U+2581 and what goes on has no mark.
// Control tokens, and what stands in brackets in older files, are spelled as they are.
void set_word_piece_rules(VocabData& vocab) {
  vocab.subword_prefix = "##";
  for (size_t id = 0; id < vocab.tokens.size(); ++id) {
    std::string& token = vocab.tokens[id];
    const TokenType type = vocab.types[id];
    const bool bracketed = token.size() > 2 && token.front() == '[' && token.back() == ']';
    if (token.empty() || type == TokenType::kControl || type == TokenType::kUnknown || bracketed) continue;
    if (token.starts_with(kMetaspace)) {
      token.erase(0, kMetaspace.size());
    } else {
      token.insert(0, vocab.subword_prefix);
    }
  }
  vocab.normalizer.push_back({NormalizerStep::Op::kBert});
  PreTokenizerStep step;
  step.op = PreTokenizerStep::Op::kSpaces;
  vocab.pre_tokenizer.push_back(step);
  step.op = PreTokenizerStep::Op::kPunctuation;
  vocab.pre_tokenizer.push_back(step);
  vocab.decoder = {.word_pieces = true, .cleanup = true};
}

Result<void> set_byte_level_rules(const GgufVocabView& view, VocabData& vocab, bool& add_bos) {
  auto recipe = pre_tokenizer_by_name(view.pre);
  if (!recipe)
    return fail(ErrorCode::kUnsupported,
                "[tokenizer] the pre-tokenizer '{}' (tokenizer.ggml.pre) is not known",
                utf8::sanitize(view.pre.substr(0, 64)));
  if (view.pre.empty() || view.pre == "default")
    log(LogLevel::kWarning,
        "[tokenizer] the file names no pre-tokenizer; splits may differ from the model's own");
  vocab.pre_tokenizer = std::move(recipe->steps);
  vocab.ignore_merges = recipe->ignore_merges;
  vocab.add_space_prefix = view.add_space_prefix.value_or(false);
  if (vocab.add_space_prefix) vocab.pre_tokenizer.back().add_prefix_space = true;
  add_bos = recipe->add_bos;
  return {};
}

}  // namespace

Result<VocabData> vocab_from_gguf(const GgufVocabView& view) {
  VocabData vocab;
  if (view.model == "llama") {
    vocab.kind = VocabKind::kScoreBpe;
  } else if (view.model == "gpt2") {
    vocab.kind = VocabKind::kByteLevelBpe;
  } else if (view.model == "bert") {
    vocab.kind = VocabKind::kWordPiece;
  } else if (view.model.empty()) {
    return fail(ErrorCode::kBadFile, "[tokenizer] tokenizer.ggml.model wanted, the file has no vocabulary");
  } else {
    return fail(ErrorCode::kUnsupported,
                "[tokenizer] tokenizer.ggml.model llama, gpt2 or bert wanted, got '{}'",
                utf8::sanitize(view.model.substr(0, 64)));
  }
  DOPPLER_CHECK_OK(copy_tokens(view, vocab));
  const size_t count = vocab.tokens.size();
  DOPPLER_TRY(vocab.bos, checked_id(view.bos, count, "bos_token_id"));
  DOPPLER_TRY(vocab.eos, checked_id(view.eos, count, "eos_token_id"));
  DOPPLER_TRY(vocab.unk, checked_id(view.unk, count, "unknown_token_id"));
  DOPPLER_TRY(vocab.pad, checked_id(view.pad, count, "padding_token_id"));
  DOPPLER_TRY(const auto cls, checked_id(view.cls, count, "cls_token_id"));
  DOPPLER_TRY(const auto sep, checked_id(view.sep, count, "seperator_token_id"));
  if (vocab.kind == VocabKind::kWordPiece) set_bert_special(cls, sep, vocab);
  DOPPLER_TRY(const auto eot, checked_id(view.eot, count, "eot_token_id"));
  DOPPLER_TRY(const auto eom, checked_id(view.eom, count, "eom_token_id"));
  DOPPLER_CHECK_OK(copy_types(view, vocab));
  for (size_t id = 0; id < count; ++id) {
    const TokenType type = vocab.types[id];
    if (type == TokenType::kControl || type == TokenType::kUnknown || type == TokenType::kUserDefined)
      vocab.added.push_back({.id = static_cast<int32_t>(id)});
  }
  bool add_bos = vocab.kind == VocabKind::kScoreBpe;
  if (vocab.kind == VocabKind::kScoreBpe) {
    if (view.scores.empty())
      return fail(ErrorCode::kBadFile,
                  "[tokenizer] tokenizer.ggml.scores wanted for model llama, the file has none");
    for (size_t id = 0; id < count; ++id)
      if (!std::isfinite(view.scores[id]))
        return fail(ErrorCode::kBadFile, "[tokenizer] token {}'s score is not a finite number", id);
    vocab.scores.assign(view.scores.begin(), view.scores.end());
    set_metaspace_rules(view, vocab);
  } else if (vocab.kind == VocabKind::kWordPiece) {
    set_word_piece_rules(vocab);
    add_bos = true;
  } else {
    DOPPLER_CHECK_OK(read_merges(view, vocab));
    DOPPLER_CHECK_OK(set_byte_level_rules(view, vocab, add_bos));
  }
  vocab.pre_name = std::string(view.pre);
  vocab.add_bos = view.add_bos.value_or(add_bos) && vocab.bos;
  vocab.add_eos = view.add_eos.value_or(vocab.kind == VocabKind::kWordPiece) && vocab.eos;
  if (vocab.add_bos) vocab.prefix = {*vocab.bos};
  if (vocab.add_eos) vocab.suffix = {*vocab.eos};
  set_end_ids(vocab, {eot, eom});
  return vocab;
}

}  // namespace doppler
