#include <simdjson.h>

#include <algorithm>
#include <bit>

#include "tokenizer/byte_tokens.h"
#include "tokenizer/end_tokens.h"
#include "tokenizer/json_components.h"
#include "tokenizer/json_score.h"
#include "tokenizer/token_index.h"
#include "tokenizer/utf8.h"
#include "tokenizer/vocab.h"

namespace doppler {
namespace {

namespace ondemand = simdjson::ondemand;
using simdjson::SUCCESS;

tl::unexpected<Error> malformed(simdjson::error_code error, std::string_view where) {
  return fail(ErrorCode::kBadFile, "[tokenizer.json] {} does not parse: {}", where,
              simdjson::error_message(error));
}

// The files are tens of megabytes, nearly all of it vocabulary and merges: those are read in place, the small
// components go through a DOM.
class Reader {
 public:
  explicit Reader(std::string_view text) : padded_(text) {}

  Result<VocabData> read(std::string_view tokenizer_config);

 private:
  Result<void> read_root();
  Result<void> read_model(ondemand::object model);
  Result<void> read_model_options(ondemand::object model);
  Result<void> read_pieces(ondemand::array pieces);
  Result<void> read_vocab(ondemand::object entries);
  Result<void> read_merges(ondemand::array merges);
  Result<void> place_tokens();

  simdjson::padded_string padded_;
  ondemand::parser parser_;
  ondemand::document document_;
  VocabData vocab_;
  std::string unk_token_;
  std::optional<uint64_t> unk_id_;                         // Unigram
  std::vector<std::pair<std::string, uint64_t>> entries_;  // text, id
  std::string added_, normalizer_, pre_tokenizer_, post_processor_, decoder_;
};

constexpr uint64_t kMaxWordChars = uint64_t{1} << 20;

std::string_view trimmed(std::string_view json) {
  while (!json.empty() &&
         (json.back() == ' ' || json.back() == '\n' || json.back() == '\r' || json.back() == '\t'))
    json.remove_suffix(1);
  return json;
}

Result<void> Reader::read_root() {
  if (const auto error = parser_.iterate(padded_).get(document_); error != SUCCESS)
    return malformed(error, "the file");
  ondemand::object root;
  if (const auto error = document_.get_object().get(root); error != SUCCESS)
    return malformed(error, "the file");
  bool has_model = false;
  for (auto result : root) {
    ondemand::field field;
    if (const auto error = std::move(result).get(field); error != SUCCESS)
      return malformed(error, "the file");
    std::string_view key;
    if (const auto error = field.unescaped_key().get(key); error != SUCCESS) return malformed(error, "a key");
    if (key == "model") {
      ondemand::object model;
      if (const auto error = field.value().get_object().get(model); error != SUCCESS)
        return malformed(error, "model");
      DOPPLER_CHECK_OK(read_model(model));
      has_model = true;
      continue;
    }
    std::string* target = key == "added_tokens"     ? &added_
                          : key == "normalizer"     ? &normalizer_
                          : key == "pre_tokenizer"  ? &pre_tokenizer_
                          : key == "post_processor" ? &post_processor_
                          : key == "decoder"        ? &decoder_
                                                    : nullptr;
    if (target == nullptr) continue;
    std::string_view raw;
    if (const auto error = simdjson::to_json_string(field.value()).get(raw); error != SUCCESS)
      return malformed(error, "a component");
    target->assign(trimmed(raw));
  }
  if (!has_model) return fail(ErrorCode::kBadFile, "[tokenizer.json] a model wanted, the file has none");
  return {};
}

Result<void> Reader::read_model(ondemand::object model) {
  DOPPLER_CHECK_OK(read_model_options(model));
  if (const auto error = model.reset().error(); error != SUCCESS) return malformed(error, "model");
  if (vocab_.kind == VocabKind::kUnigram) {
    ondemand::array pieces;
    if (const auto error = model.find_field_unordered("vocab").get_array().get(pieces); error != SUCCESS)
      return fail(ErrorCode::kBadFile, "[tokenizer.json] model.vocab of a Unigram wanted as a list");
    return read_pieces(pieces);
  }
  ondemand::object entries;
  if (const auto error = model.find_field_unordered("vocab").get_object().get(entries); error != SUCCESS)
    return fail(ErrorCode::kBadFile, "[tokenizer.json] model.vocab wanted as an object");
  DOPPLER_CHECK_OK(read_vocab(entries));
  if (vocab_.kind == VocabKind::kWordPiece) return {};
  if (const auto error = model.reset().error(); error != SUCCESS) return malformed(error, "model");
  ondemand::array merges;
  if (const auto error = model.find_field_unordered("merges").get_array().get(merges); error != SUCCESS)
    return fail(ErrorCode::kBadFile, "[tokenizer.json] model.merges wanted as a list");
  return read_merges(merges);
}

Result<void> Reader::read_model_options(ondemand::object model) {
  std::string type;
  std::optional<std::string> prefix;
  for (auto result : model) {
    ondemand::field field;
    if (const auto error = std::move(result).get(field); error != SUCCESS) return malformed(error, "model");
    std::string_view key;
    if (const auto error = field.unescaped_key().get(key); error != SUCCESS) return malformed(error, "model");
    std::string_view text;
    bool flag = false;
    if (key == "type") {
      if (field.value().get_string().get(text) == SUCCESS) type = text;
    } else if (key == "unk_token") {
      if (field.value().get_string().get(text) == SUCCESS) unk_token_ = text;
    } else if (key == "unk_id") {
      uint64_t id = 0;
      if (field.value().get_uint64().get(id) == SUCCESS) unk_id_ = id;
    } else if (key == "max_input_chars_per_word") {
      uint64_t count = 0;
      if (field.value().get_uint64().get(count) == SUCCESS)
        vocab_.max_word_chars = static_cast<uint32_t>(std::min<uint64_t>(count, kMaxWordChars));
    } else if (key == "continuing_subword_prefix") {
      if (field.value().get_string().get(text) == SUCCESS) prefix = text;
    } else if (key == "end_of_word_suffix") {
      if (field.value().get_string().get(text) == SUCCESS) vocab_.word_suffix = text;
    } else if (key == "dropout") {
      double dropout = 0;
      if (field.value().get_double().get(dropout) == SUCCESS && dropout != 0)
        return fail(ErrorCode::kUnsupported, "[tokenizer.json] no dropout wanted for encoding, got {}",
                    dropout);
    } else if (key == "byte_fallback") {
      if (field.value().get_bool().get(flag) == SUCCESS) vocab_.byte_fallback = flag;
    } else if (key == "fuse_unk") {
      if (field.value().get_bool().get(flag) == SUCCESS) vocab_.fuse_unknown = flag;
    } else if (key == "ignore_merges") {
      if (field.value().get_bool().get(flag) == SUCCESS) vocab_.ignore_merges = flag;
    }
  }
  if (type == "WordPiece") {
    vocab_.kind = VocabKind::kWordPiece;
    vocab_.subword_prefix = prefix.value_or("##");
  } else if (type == "Unigram") {
    vocab_.kind = VocabKind::kUnigram;
    vocab_.fuse_unknown = true;
  } else if (type == "BPE" || type.empty()) {  // old files leave it out
    vocab_.kind = VocabKind::kFallbackBpe;
    vocab_.subword_prefix = prefix.value_or("");
  } else {
    return fail(ErrorCode::kUnsupported,
                "[tokenizer.json] a model of type BPE, Unigram or WordPiece wanted, got '{}'",
                utf8::sanitize(std::string_view(type).substr(0, 32)));
  }
  return {};
}

// [[text, score], ...], ids in order.
Result<void> Reader::read_pieces(ondemand::array pieces) {
  for (auto result : pieces) {
    ondemand::array pair;
    if (const auto error = result.get_array().get(pair); error != SUCCESS)
      return malformed(error, "model.vocab");
    std::string text;
    double score = 0;
    size_t count = 0;
    for (auto part : pair) {
      std::string_view view;
      simdjson::error_code error = simdjson::INCORRECT_TYPE;
      if (count == 0) {
        error = part.get_string().get(view);
      } else if (count == 1) {
        ondemand::value number;
        error = std::move(part).get(number);
        if (error == SUCCESS) view = trimmed(number.raw_json_token());
        if (error == SUCCESS) error = number.get_double().get(score);
        if (error == SUCCESS) score = tokenizer_json::read_score(view);
      }
      if (error != SUCCESS) return malformed(error, "a token's text or score");
      if (count++ == 0) text = view;
    }
    if (count != 2)
      return fail(ErrorCode::kBadFile, "[tokenizer.json] token {} wanted as [text, score]",
                  vocab_.tokens.size());
    vocab_.tokens.push_back(std::move(text));
    vocab_.scores.push_back(score);
  }
  vocab_.types.assign(vocab_.tokens.size(), TokenType::kNormal);
  if (!unk_id_) return {};
  if (*unk_id_ >= vocab_.tokens.size())
    return fail(ErrorCode::kBadFile, "[tokenizer.json] unk_id wanted below {}, got {}", vocab_.tokens.size(),
                *unk_id_);
  unk_token_ = vocab_.tokens[*unk_id_];
  vocab_.types[*unk_id_] = TokenType::kUnknown;
  return {};
}

Result<void> Reader::read_vocab(ondemand::object entries) {
  for (auto result : entries) {
    ondemand::field field;
    if (const auto error = std::move(result).get(field); error != SUCCESS)
      return malformed(error, "model.vocab");
    std::string_view text;
    if (const auto error = field.unescaped_key().get(text); error != SUCCESS)
      return malformed(error, "model.vocab");
    std::string owned(text);
    uint64_t id = 0;
    if (const auto error = field.value().get_uint64().get(id); error != SUCCESS)
      return malformed(error, "a token's id");
    entries_.emplace_back(std::move(owned), id);
  }
  return place_tokens();
}

Result<void> Reader::place_tokens() {
  uint64_t end = 0;
  for (const auto& [text, id] : entries_) end = std::max(end, id + 1);
  // Real files have a few holes; a single huge id must not cost gigabytes.
  if (end == 0 || end > entries_.size() * 2 + 4096)
    return fail(ErrorCode::kBadFile, "[tokenizer.json] token ids wanted up to about {}, got {}",
                entries_.size(), end == 0 ? 0 : end - 1);
  vocab_.tokens.resize(end);
  vocab_.types.assign(end, TokenType::kNormal);
  for (auto& [text, id] : entries_) {
    if (!vocab_.tokens[id].empty())
      return fail(ErrorCode::kBadFile, "[tokenizer.json] the id {} wanted once, '{}' and '{}' have it", id,
                  vocab_.tokens[id], text);
    vocab_.tokens[id] = std::move(text);
  }
  entries_ = {};
  return {};
}

Result<void> Reader::read_merges(ondemand::array merges) {
  const TokenIndex index(vocab_.tokens);
  size_t rank = 0;
  for (auto result : merges) {
    ondemand::value value;
    if (const auto error = std::move(result).get(value); error != SUCCESS)
      return malformed(error, "model.merges");
    ondemand::json_type type;
    if (const auto error = value.type().get(type); error != SUCCESS) return malformed(error, "model.merges");
    int32_t ids[2] = {-1, -1};
    if (type == ondemand::json_type::string) {
      std::string_view text;
      if (const auto error = value.get_string().get(text); error != SUCCESS)
        return malformed(error, "a merge");
      if (const size_t space = text.find(' '); space != std::string_view::npos) {
        ids[0] = index.find(text.substr(0, space));
        ids[1] = index.find(text.substr(space + 1));
      }
    } else {
      ondemand::array pair;
      if (const auto error = value.get_array().get(pair); error != SUCCESS)
        return malformed(error, "a merge");
      size_t count = 0;
      for (auto part : pair) {
        std::string_view text;
        if (const auto error = part.get_string().get(text); error != SUCCESS)
          return malformed(error, "a merge");
        if (count < 2) ids[count] = index.find(text);
        ++count;
      }
      if (count != 2) ids[0] = -1;
    }
    if (ids[0] < 0 || ids[1] < 0)
      return fail(ErrorCode::kBadFile,
                  "[tokenizer.json] merge {} wanted as a pair of tokens of the vocabulary", rank);
    vocab_.merges.push_back({ids[0], ids[1]});
    ++rank;
  }
  return {};
}

Result<VocabData> Reader::read(std::string_view tokenizer_config) {
  DOPPLER_CHECK_OK(read_root());
  padded_ = simdjson::padded_string();
  DOPPLER_TRY(vocab_.normalizer, tokenizer_json::read_normalizer(normalizer_));
  DOPPLER_TRY(vocab_.pre_tokenizer, tokenizer_json::read_pre_tokenizer(pre_tokenizer_));
  DOPPLER_TRY(const auto decoder, tokenizer_json::read_decoder(decoder_));
  DOPPLER_TRY(const auto post_processor, tokenizer_json::read_post_processor(post_processor_));
  DOPPLER_TRY(const auto added, tokenizer_json::read_added_tokens(added_));
  DOPPLER_CHECK_OK(tokenizer_json::set_kind(decoder, vocab_));
  vocab_.decoder = decoder.rules;
  // What ends words of a byte-level vocabulary is no text, though the file's decoder leaves it in.
  if (vocab_.kind == VocabKind::kByteLevelBpe) vocab_.decoder.word_end = vocab_.word_suffix;
  vocab_.prefix = post_processor.prefix;
  vocab_.suffix = post_processor.suffix;
  if (vocab_.byte_fallback) {
    for (size_t id = 0; id < vocab_.tokens.size(); ++id)
      if (byte_token_value(vocab_.tokens[id]) >= 0) vocab_.types[id] = TokenType::kByte;
  }
  DOPPLER_CHECK_OK(tokenizer_json::place_added(added, vocab_));
  DOPPLER_CHECK_OK(tokenizer_json::apply_config(tokenizer_config, unk_token_, vocab_));
  for (const auto* ids : {&vocab_.prefix, &vocab_.suffix}) {
    for (const int32_t id : *ids)
      if (static_cast<size_t>(id) >= vocab_.tokens.size())
        return fail(ErrorCode::kBadFile,
                    "[tokenizer.json] the template has the id {}, the vocabulary has {} tokens", id,
                    vocab_.tokens.size());
  }
  vocab_.add_space_prefix =
      std::any_of(vocab_.normalizer.begin(), vocab_.normalizer.end(),
                  [](const NormalizerStep& step) { return step.op == NormalizerStep::Op::kPrepend; });
  set_end_ids(vocab_);
  return std::move(vocab_);
}

}  // namespace

Result<VocabData> vocab_from_tokenizer_json(std::string_view json, std::string_view tokenizer_config) {
  return Reader(json).read(tokenizer_config);
}

}  // namespace doppler
