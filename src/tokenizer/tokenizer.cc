#include "tokenizer/tokenizer.h"

#include <cmath>

#include "tokenizer/added_tokens.h"
#include "tokenizer/bpe.h"
#include "tokenizer/normalizer.h"
#include "tokenizer/pre_tokenizer.h"
#include "tokenizer/token_index.h"
#include "tokenizer/token_text.h"
#include "tokenizer/unigram.h"
#include "tokenizer/utf8.h"
#include "tokenizer/word_piece.h"

namespace doppler {

struct Tokenizer::Parts {
  VocabData vocab;
  TokenIndex index;
  Normalizer normalizer;
  PreTokenizer pre_tokenizer;
  // The model; each refers to vocab and index, so it is made last.
  std::optional<Bpe> bpe;
  std::optional<Unigram> unigram;
  std::optional<WordPiece> word_piece;
  // Tokens found in raw text and in normalised text; `plain` holds those that match without parse_special.
  AddedTokenMatcher raw_all, raw_plain, normalized_all, normalized_plain;

  Parts(VocabData data, Normalizer norm, PreTokenizer pre)
      : vocab(std::move(data)),
        index(vocab.tokens),
        normalizer(std::move(norm)),
        pre_tokenizer(std::move(pre)),
        raw_all(entries(false, true)),
        raw_plain(entries(false, false)),
        normalized_all(entries(true, true)),
        normalized_plain(entries(true, false)) {}

  std::vector<AddedTokenMatcher::Entry> entries(bool normalized, bool special) const {
    std::vector<AddedTokenMatcher::Entry> result;
    for (const AddedToken& token : vocab.added) {
      const std::string& text = vocab.tokens[static_cast<size_t>(token.id)];
      if (token.normalized != normalized) continue;
      // SentencePiece's unigram models weigh user-defined pieces against the others.
      if (vocab.kind == VocabKind::kUnigram && vocab.float_paths && normalized) continue;
      if (!special && vocab.types[static_cast<size_t>(token.id)] != TokenType::kUserDefined) continue;
      result.push_back({normalized ? normalizer.token_text(text) : text, token});
    }
    return result;
  }
};

namespace {

Result<void> check_id(const VocabData& vocab, int32_t id, const char* what) {
  if (id < 0 || static_cast<size_t>(id) >= vocab.tokens.size())
    return fail(ErrorCode::kBadFile, "[tokenizer] {} is {}, the vocabulary has {} tokens", what, id,
                vocab.tokens.size());
  return {};
}

Result<void> check(const VocabData& vocab) {
  if (vocab.tokens.empty()) return fail(ErrorCode::kBadFile, "[tokenizer] the vocabulary has no tokens");
  if (vocab.types.size() != vocab.tokens.size())
    return fail(ErrorCode::kBadFile, "[tokenizer] {} tokens, but {} token types", vocab.tokens.size(),
                vocab.types.size());
  if (vocab.kind == VocabKind::kScoreBpe || vocab.kind == VocabKind::kUnigram) {
    if (vocab.scores.size() != vocab.tokens.size())
      return fail(ErrorCode::kBadFile, "[tokenizer] {} tokens, but {} scores", vocab.tokens.size(),
                  vocab.scores.size());
    for (const double score : vocab.scores)
      if (!std::isfinite(score))
        return fail(ErrorCode::kBadFile, "[tokenizer] a token's score is not a finite number");
  }
  for (const MergePair& merge : vocab.merges) {
    DOPPLER_CHECK_OK(check_id(vocab, merge.left, "a merge's left token"));
    DOPPLER_CHECK_OK(check_id(vocab, merge.right, "a merge's right token"));
  }
  for (const AddedToken& token : vocab.added) DOPPLER_CHECK_OK(check_id(vocab, token.id, "an added token"));
  for (const int32_t id : vocab.prefix) DOPPLER_CHECK_OK(check_id(vocab, id, "a token put before the text"));
  for (const int32_t id : vocab.suffix) DOPPLER_CHECK_OK(check_id(vocab, id, "a token put after the text"));
  for (const int32_t id : vocab.end_ids) DOPPLER_CHECK_OK(check_id(vocab, id, "an end token"));
  if (vocab.bos) DOPPLER_CHECK_OK(check_id(vocab, *vocab.bos, "the BOS token"));
  if (vocab.eos) DOPPLER_CHECK_OK(check_id(vocab, *vocab.eos, "the EOS token"));
  if (vocab.unk) DOPPLER_CHECK_OK(check_id(vocab, *vocab.unk, "the unknown token"));
  if (vocab.pad) DOPPLER_CHECK_OK(check_id(vocab, *vocab.pad, "the padding token"));
  return {};
}

// Cuts `text` at a matcher's tokens: text(piece, offset) for what lies between them, token(id) for each.
template <class Text, class Token>
void cut_at_tokens(std::string_view text, const AddedTokenMatcher& matcher, Text&& on_text,
                   Token&& on_token) {
  size_t position = 0;
  while (const auto match = matcher.find(text, position)) {
    if (match->begin > position) on_text(text.substr(position, match->begin - position), position);
    on_token(match->id);
    position = match->end;
  }
  if (position < text.size()) on_text(text.substr(position), position);
}

}  // namespace

Tokenizer::Tokenizer(std::unique_ptr<Parts> parts) : parts_(std::move(parts)) {}
Tokenizer::~Tokenizer() = default;

Result<std::unique_ptr<Tokenizer>> make_tokenizer(VocabData vocab) {
  DOPPLER_CHECK_OK(check(vocab));
  DOPPLER_TRY(Normalizer normalizer, Normalizer::make(vocab));
  DOPPLER_TRY(PreTokenizer pre_tokenizer, PreTokenizer::make(vocab.pre_tokenizer));
  auto parts =
      std::make_unique<Tokenizer::Parts>(std::move(vocab), std::move(normalizer), std::move(pre_tokenizer));
  if (parts->vocab.kind == VocabKind::kUnigram) {
    parts->unigram.emplace(parts->vocab, parts->index);
  } else if (parts->vocab.kind == VocabKind::kWordPiece) {
    parts->word_piece.emplace(parts->vocab, parts->index);
  } else {
    DOPPLER_TRY(parts->bpe, Bpe::make(parts->vocab, parts->index));
  }
  return std::unique_ptr<Tokenizer>(new Tokenizer(std::move(parts)));
}

std::vector<int32_t> Tokenizer::encode(std::string_view text, const EncodeOptions& options) const {
  const Parts& p = *parts_;
  std::vector<int32_t> ids;
  if (options.bos == BosRule::kAlways && p.vocab.prefix.empty() && p.vocab.bos) {
    ids.push_back(*p.vocab.bos);
  } else if (options.bos != BosRule::kNever) {
    ids = p.vocab.prefix;
  }
  const size_t added = ids.size();
  Bpe::Scratch bpe_scratch;
  Unigram::Scratch unigram_scratch;
  const PreTokenizer::Sink encode_piece = [&](std::string_view piece) {
    if (p.bpe) {
      p.bpe->encode(piece, bpe_scratch, ids);
    } else if (p.unigram) {
      p.unigram->encode(piece, unigram_scratch, ids);
    } else {
      p.word_piece->encode(piece, ids);
    }
  };
  const auto push_id = [&](int32_t id) { ids.push_back(id); };
  const auto& raw = options.parse_special ? p.raw_all : p.raw_plain;
  const auto& normalized = options.parse_special ? p.normalized_all : p.normalized_plain;
  cut_at_tokens(
      text, raw,
      [&](std::string_view stretch, size_t offset) {
        std::string changed;
        if (!p.normalizer.empty()) stretch = changed = p.normalizer.apply(stretch);
        cut_at_tokens(
            stretch, normalized,
            [&](std::string_view part, size_t part_offset) {
              p.pre_tokenizer.run(part, offset + part_offset == 0, encode_piece);
            },
            push_id);
      },
      push_id);
  const size_t suffix = options.bos == BosRule::kModel ? p.vocab.suffix.size() : 0;
  if (options.max_ids != 0) {
    const size_t room = options.max_ids > added + suffix ? options.max_ids - added - suffix : 0;
    if (ids.size() > added + room) ids.resize(added + room);
  }
  if (suffix != 0) ids.insert(ids.end(), p.vocab.suffix.begin(), p.vocab.suffix.end());
  return ids;
}

std::string Tokenizer::token_bytes(int32_t id) const {
  return id < 0 || id >= vocab_size() ? std::string() : text_of_token(parts_->vocab, id);
}

std::string Tokenizer::decode_bytes(std::span<const int32_t> ids, const DecodeOptions& options) const {
  const VocabData& v = parts_->vocab;
  std::string out;
  bool at_start = true;
  bool ends_word = false;
  for (const int32_t id : ids) {
    if (options.skip_special && is_control(id)) continue;
    if (v.decoder.word_pieces) {
      out += id < 0 || id >= vocab_size() ? std::string() : text_of_token(v, id, at_start);
      at_start = false;
      continue;
    }
    const std::string bytes = token_bytes(id);
    const bool strip = at_start && v.decoder.strip_start && bytes.starts_with(' ');
    out += strip ? std::string_view(bytes).substr(1) : std::string_view(bytes);
    if (!v.decoder.word_end.empty()) ends_word = token_text(id).ends_with(v.decoder.word_end);
    // The prefix space follows the tokens that only mark the start.
    at_start = at_start && (is_control(id) || (v.decoder.strip_all && out.empty()));
  }
  if (ends_word && out.ends_with(' ')) out.pop_back();
  return out;
}

std::string Tokenizer::decode(std::span<const int32_t> ids, const DecodeOptions& options) const {
  return utf8::sanitize(decode_bytes(ids, options));
}

std::string_view Tokenizer::token_text(int32_t id) const {
  if (id < 0 || id >= vocab_size()) return {};
  return parts_->vocab.tokens[static_cast<size_t>(id)];
}

std::optional<int32_t> Tokenizer::token_id(std::string_view text) const {
  const int32_t id = parts_->index.find(text);
  return id < 0 ? std::nullopt : std::optional<int32_t>(id);
}

int32_t Tokenizer::vocab_size() const { return static_cast<int32_t>(parts_->vocab.tokens.size()); }

bool Tokenizer::is_control(int32_t id) const {
  if (id < 0 || id >= vocab_size()) return false;
  const TokenType type = parts_->vocab.types[static_cast<size_t>(id)];
  return type == TokenType::kControl || type == TokenType::kUnknown;
}

const VocabData& Tokenizer::vocab() const { return parts_->vocab; }

StreamDecoder::StreamDecoder(const Tokenizer& tokenizer, DecodeOptions options)
    : tokenizer_(&tokenizer), options_(options) {}

std::string StreamDecoder::push(int32_t id) {
  if (options_.skip_special && tokenizer_->is_control(id)) return {};
  pending_ += tokenizer_->token_bytes(id);
  const size_t whole = pending_.size() - utf8::incomplete_tail(pending_);
  std::string out = utf8::sanitize(std::string_view(pending_).substr(0, whole));
  pending_.erase(0, whole);
  return out;
}

std::string StreamDecoder::finish() {
  std::string out = utf8::sanitize(pending_);
  pending_.clear();
  return out;
}

}  // namespace doppler
