#include <simdjson.h>

#include <algorithm>
#include <bit>

#include "tokenizer/byte_tokens.h"
#include "tokenizer/end_tokens.h"
#include "tokenizer/json_components.h"
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
  Result<void> read_vocab(ondemand::object entries);
  Result<void> read_merges(ondemand::array merges);
  Result<void> place_tokens();
  Result<void> place_added(const std::vector<tokenizer_json::AddedTokenText>& added);
  Result<void> resolve_merges();
  Result<void> apply_config(std::string_view tokenizer_config);
  std::string component(const char* key);

  simdjson::padded_string padded_;
  ondemand::parser parser_;
  ondemand::document document_;
  VocabData vocab_;
  std::string unk_token_;
  std::vector<std::pair<std::string, uint64_t>> entries_;  // text, id
  std::string added_, normalizer_, pre_tokenizer_, post_processor_, decoder_;
};

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
  ondemand::object entries;
  if (const auto error = model.find_field_unordered("vocab").get_object().get(entries); error != SUCCESS)
    return fail(ErrorCode::kBadFile, "[tokenizer.json] model.vocab wanted as an object");
  DOPPLER_CHECK_OK(read_vocab(entries));
  if (const auto error = model.reset().error(); error != SUCCESS) return malformed(error, "model");
  ondemand::array merges;
  if (const auto error = model.find_field_unordered("merges").get_array().get(merges); error != SUCCESS)
    return fail(ErrorCode::kBadFile, "[tokenizer.json] model.merges wanted as a list");
  return read_merges(merges);
}

Result<void> Reader::read_model_options(ondemand::object model) {
  std::string type = "BPE";  // old files leave it out
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
    } else if (key == "continuing_subword_prefix" || key == "end_of_word_suffix") {
      if (field.value().get_string().get(text) == SUCCESS && !text.empty())
        return fail(ErrorCode::kUnsupported,
                    "[tokenizer.json] a BPE model with a subword prefix or suffix ('{}') is not supported",
                    utf8::sanitize(text.substr(0, 32)));
    } else if (key == "byte_fallback") {
      if (field.value().get_bool().get(flag) == SUCCESS) vocab_.byte_fallback = flag;
    } else if (key == "fuse_unk") {
      if (field.value().get_bool().get(flag) == SUCCESS) vocab_.fuse_unknown = flag;
    } else if (key == "ignore_merges") {
      if (field.value().get_bool().get(flag) == SUCCESS) vocab_.ignore_merges = flag;
    }
  }
  if (type != "BPE")
    return fail(ErrorCode::kUnsupported, "[tokenizer.json] a model of type BPE wanted, got '{}'",
                utf8::sanitize(std::string_view(type).substr(0, 32)));
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

Result<void> Reader::place_added(const std::vector<tokenizer_json::AddedTokenText>& added) {
  for (const auto& [token, content, special] : added) {
    const auto id = static_cast<size_t>(token.id);
    if (content.empty()) continue;
    if (id >= vocab_.tokens.size()) {
      if (id > vocab_.tokens.size() + added.size() + 4096)
        return fail(ErrorCode::kBadFile,
                    "[tokenizer.json] the added token '{}' has the id {}, the vocabulary has {}", content, id,
                    vocab_.tokens.size());
      vocab_.tokens.resize(id + 1);
      vocab_.types.resize(id + 1, TokenType::kNormal);
    }
    if (!vocab_.tokens[id].empty() && vocab_.tokens[id] != content)
      return fail(ErrorCode::kBadFile, "[tokenizer.json] the added token '{}' has the id {} of '{}'", content,
                  id, vocab_.tokens[id]);
    vocab_.tokens[id] = content;
    vocab_.types[id] = special ? TokenType::kControl : TokenType::kUserDefined;
    vocab_.added.push_back(token);
  }
  std::sort(vocab_.added.begin(), vocab_.added.end(),
            [](const AddedToken& a, const AddedToken& b) { return a.id < b.id; });
  const auto same = [](const AddedToken& a, const AddedToken& b) { return a.id == b.id; };
  vocab_.added.erase(std::unique(vocab_.added.begin(), vocab_.added.end(), same), vocab_.added.end());
  return {};
}

Result<void> Reader::apply_config(std::string_view text) {
  DOPPLER_TRY(const auto config, tokenizer_json::read_tokenizer_config(text));
  const TokenIndex index(vocab_.tokens);
  if (const auto twice = index.duplicate())
    return fail(ErrorCode::kBadFile, "[tokenizer.json] every token wanted once, {} and {} are both '{}'",
                twice->first, twice->second, vocab_.tokens[static_cast<size_t>(twice->first)]);
  const auto id_of = [&](const std::string& token) {
    const int32_t id = index.find(token);
    return id < 0 ? std::nullopt : std::optional<int32_t>(id);
  };
  vocab_.eos = id_of(config.eos);
  vocab_.pad = id_of(config.pad);
  vocab_.bos = id_of(config.bos);
  if (unk_token_.empty()) unk_token_ = config.unk;
  vocab_.unk = id_of(unk_token_);
  // These classes build their template from the flags and do not look at the file's own.
  const std::string& name = config.tokenizer_class;
  const bool by_flags =
      name.starts_with("Llama") || name.starts_with("Gemma") || name.starts_with("CodeLlama");
  if (by_flags && config.add_bos) {
    vocab_.prefix.clear();
    if (*config.add_bos && vocab_.bos) vocab_.prefix = {*vocab_.bos};
  }
  if (by_flags && config.add_eos) {
    vocab_.suffix.clear();
    if (*config.add_eos && vocab_.eos) vocab_.suffix = {*vocab_.eos};
  }
  if (!vocab_.bos && vocab_.prefix.size() == 1) vocab_.bos = vocab_.prefix[0];
  vocab_.add_bos = vocab_.bos && !vocab_.prefix.empty() && vocab_.prefix[0] == *vocab_.bos;
  vocab_.add_eos = vocab_.eos && !vocab_.suffix.empty() && vocab_.suffix.back() == *vocab_.eos;
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
  const bool byte_level =
      std::any_of(vocab_.pre_tokenizer.begin(), vocab_.pre_tokenizer.end(),
                  [](const PreTokenizerStep& step) { return step.op == PreTokenizerStep::Op::kByteLevel; });
  if (byte_level != decoder.byte_level)
    return fail(ErrorCode::kUnsupported,
                "[tokenizer.json] ByteLevel wanted in both pre_tokenizer and decoder or in neither");
  vocab_.kind = byte_level ? VocabKind::kByteLevelBpe : VocabKind::kFallbackBpe;
  vocab_.decoder = decoder.rules;
  vocab_.prefix = post_processor.prefix;
  vocab_.suffix = post_processor.suffix;
  if (vocab_.byte_fallback) {
    for (size_t id = 0; id < vocab_.tokens.size(); ++id)
      if (byte_token_value(vocab_.tokens[id]) >= 0) vocab_.types[id] = TokenType::kByte;
  }
  DOPPLER_CHECK_OK(place_added(added));
  DOPPLER_CHECK_OK(apply_config(tokenizer_config));
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
