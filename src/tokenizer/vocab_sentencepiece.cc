#include <algorithm>
#include <bit>
#include <cmath>

#include "tokenizer/end_tokens.h"
#include "tokenizer/json_components.h"
#include "tokenizer/protobuf.h"
#include "tokenizer/token_index.h"
#include "tokenizer/utf8.h"
#include "tokenizer/vocab.h"

namespace doppler {
namespace {

// Field numbers of sentencepiece_model.proto.
namespace model_field {
constexpr uint32_t kPiece = 1, kTrainer = 2, kNormalizer = 3;
}
namespace piece_field {
constexpr uint32_t kText = 1, kScore = 2, kType = 3;
}
namespace trainer_field {
constexpr uint32_t kModelType = 3, kSpaceAsSuffix = 24, kByteFallback = 35, kUnk = 45, kBos = 46, kEos = 47,
                   kPad = 48;
}
namespace normalizer_field {
constexpr uint32_t kMap = 2, kDummyPrefix = 3, kRemoveExtraSpaces = 4, kEscapeSpaces = 5;
}

struct Trainer {
  uint64_t model_type = 1;  // 1 unigram, 2 BPE, 3 word, 4 char
  bool space_as_suffix = false;
  bool byte_fallback = false;
  std::string unk = "<unk>", bos = "<s>", eos = "</s>", pad = "<pad>";
};

// Calls each(field) for the fields of a message.
template <class Each>
Result<void> for_each_field(std::string_view message, Each&& each) {
  ProtoReader reader(message);
  while (true) {
    DOPPLER_TRY(const auto field, reader.next());
    if (!field) return {};
    DOPPLER_CHECK_OK(each(*field));
  }
}

Result<void> read_piece(std::string_view message, VocabData& vocab) {
  std::string_view text;
  float score = 0;
  uint64_t type = 1;
  DOPPLER_CHECK_OK(for_each_field(message, [&](const ProtoReader::Field& field) -> Result<void> {
    if (field.number == piece_field::kText && field.wire_type == 2) text = field.bytes;
    if (field.number == piece_field::kScore && field.wire_type == 5)
      score = std::bit_cast<float>(static_cast<uint32_t>(field.value));
    if (field.number == piece_field::kType && field.wire_type == 0) type = field.value;
    return {};
  }));
  const size_t id = vocab.tokens.size();
  if (text.empty() || !utf8::valid(text))
    return fail(ErrorCode::kBadFile, "[sentencepiece] piece {} wanted as UTF-8 text, its {} bytes are not",
                id, text.size());
  if (!std::isfinite(score))
    return fail(ErrorCode::kBadFile, "[sentencepiece] piece {}'s score is not a finite number", id);
  if (type < 1 || type > 6)
    return fail(ErrorCode::kBadFile, "[sentencepiece] piece {}'s type wanted in 1..6, got {}", id, type);
  vocab.tokens.emplace_back(text);
  vocab.scores.push_back(static_cast<double>(score));
  vocab.types.push_back(static_cast<TokenType>(type));
  return {};
}

Result<void> read_trainer(std::string_view message, Trainer& trainer) {
  return for_each_field(message, [&](const ProtoReader::Field& field) -> Result<void> {
    if (field.wire_type == 0) {
      if (field.number == trainer_field::kModelType) trainer.model_type = field.value;
      if (field.number == trainer_field::kSpaceAsSuffix) trainer.space_as_suffix = field.value != 0;
      if (field.number == trainer_field::kByteFallback) trainer.byte_fallback = field.value != 0;
    } else if (field.wire_type == 2) {
      if (field.number == trainer_field::kUnk) trainer.unk = field.bytes;
      if (field.number == trainer_field::kBos) trainer.bos = field.bytes;
      if (field.number == trainer_field::kEos) trainer.eos = field.bytes;
      if (field.number == trainer_field::kPad) trainer.pad = field.bytes;
    }
    return {};
  });
}

Result<void> read_normalizer(std::string_view message, NormalizerStep& step) {
  return for_each_field(message, [&](const ProtoReader::Field& field) -> Result<void> {
    if (field.number == normalizer_field::kMap && field.wire_type == 2) step.pattern = field.bytes;
    if (field.wire_type != 0) return {};
    if (field.number == normalizer_field::kDummyPrefix) step.dummy_prefix = field.value != 0;
    if (field.number == normalizer_field::kRemoveExtraSpaces) step.remove_extra_spaces = field.value != 0;
    if (field.number == normalizer_field::kEscapeSpaces) step.escape_spaces = field.value != 0;
    return {};
  });
}

// The special tokens, and what goes around a text: as tokenizer_config.json says, else BOS for BPE models
// (LLaMA, Gemma) and EOS for unigram models (T5), as their families do.
Result<void> set_special(const Trainer& trainer, std::string_view tokenizer_config, VocabData& vocab) {
  DOPPLER_TRY(const auto config, tokenizer_json::read_tokenizer_config(tokenizer_config));
  const TokenIndex index(vocab.tokens);
  if (const auto twice = index.duplicate())
    return fail(ErrorCode::kBadFile, "[sentencepiece] every piece wanted once, {} and {} are both '{}'",
                twice->first, twice->second, vocab.tokens[static_cast<size_t>(twice->first)]);
  const auto id_of = [&](const std::string& named, const std::string& own) {
    int32_t id = index.find(named);
    if (id < 0) id = index.find(own);
    return id < 0 ? std::nullopt : std::optional<int32_t>(id);
  };
  vocab.bos = id_of(config.bos, trainer.bos);
  vocab.eos = id_of(config.eos, trainer.eos);
  vocab.pad = id_of(config.pad, trainer.pad);
  vocab.unk = id_of({}, trainer.unk);
  for (size_t id = 0; id < vocab.types.size(); ++id)
    if (vocab.types[id] == TokenType::kUnknown) vocab.unk = static_cast<int32_t>(id);
  const bool bpe = vocab.kind == VocabKind::kScoreBpe;
  vocab.add_bos = config.add_bos.value_or(bpe) && vocab.bos;
  vocab.add_eos = config.add_eos.value_or(!bpe) && vocab.eos;
  if (vocab.add_bos) vocab.prefix = {*vocab.bos};
  if (vocab.add_eos) vocab.suffix = {*vocab.eos};
  return {};
}

}  // namespace

Result<VocabData> vocab_from_sentencepiece(std::string_view model, std::string_view tokenizer_config) {
  VocabData vocab;
  Trainer trainer;
  NormalizerStep normalizer{NormalizerStep::Op::kSentencePiece};
  DOPPLER_CHECK_OK(for_each_field(model, [&](const ProtoReader::Field& field) -> Result<void> {
    if (field.wire_type != 2) return {};
    if (field.number == model_field::kPiece) return read_piece(field.bytes, vocab);
    if (field.number == model_field::kTrainer) return read_trainer(field.bytes, trainer);
    if (field.number == model_field::kNormalizer) return read_normalizer(field.bytes, normalizer);
    return {};
  }));
  if (vocab.tokens.empty())
    return fail(ErrorCode::kBadFile, "[sentencepiece] a model with pieces wanted, the file has none");
  if (trainer.model_type != 1 && trainer.model_type != 2)
    return fail(ErrorCode::kUnsupported,
                "[sentencepiece] a model of type unigram (1) or BPE (2) wanted, got {}", trainer.model_type);
  vocab.kind = trainer.model_type == 1 ? VocabKind::kUnigram : VocabKind::kScoreBpe;
  vocab.float_paths = true;
  vocab.fuse_unknown = true;
  vocab.byte_fallback = trainer.byte_fallback;
  for (size_t id = 0; id < vocab.types.size(); ++id) {
    const TokenType type = vocab.types[id];
    if (type != TokenType::kControl && type != TokenType::kUnknown && type != TokenType::kUserDefined)
      continue;
    // User-defined tokens are found in normalised text, whose normalizer leaves them as they are.
    vocab.added.push_back({.id = static_cast<int32_t>(id), .normalized = type == TokenType::kUserDefined});
  }
  normalizer.space_as_suffix = trainer.space_as_suffix;
  vocab.add_space_prefix = normalizer.dummy_prefix && !normalizer.space_as_suffix;
  vocab.decoder.metaspace = normalizer.escape_spaces;
  vocab.decoder.byte_fallback = vocab.byte_fallback;
  vocab.decoder.strip_start = normalizer.dummy_prefix || normalizer.remove_extra_spaces;
  vocab.decoder.strip_all = normalizer.remove_extra_spaces;
  vocab.normalizer.push_back(std::move(normalizer));
  DOPPLER_CHECK_OK(set_special(trainer, tokenizer_config, vocab));
  set_end_ids(vocab);
  return vocab;
}

}  // namespace doppler
