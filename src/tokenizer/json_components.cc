// The decoder, the post-processor and the added tokens of a tokenizer.json, and tokenizer_config.json.
#include "tokenizer/json_components.h"

#include <nlohmann/json.hpp>

#include "tokenizer/json_util.h"

namespace doppler::tokenizer_json {
namespace {

using nlohmann::json;

constexpr const char* kMetaspace = "\xe2\x96\x81";

// The ids of one special token of a template.
Result<void> append_template_ids(const json& post_processor, const std::string& name,
                                 std::vector<int32_t>& out) {
  const json* tokens = member(post_processor, "special_tokens");
  const json* token = tokens != nullptr ? member(*tokens, name.c_str()) : nullptr;
  const json* ids = token != nullptr ? member(*token, "ids") : nullptr;
  if (ids == nullptr || !ids->is_array())
    return fail(ErrorCode::kBadFile, "[tokenizer.json] the template's token '{}' wanted in special_tokens",
                shown(name));
  for (const json& id : *ids) {
    if (!id.is_number_unsigned() || id.get<uint64_t>() > INT32_MAX)
      return fail(ErrorCode::kBadFile, "[tokenizer.json] the template's token '{}' wanted with an id",
                  shown(name));
    out.push_back(static_cast<int32_t>(id.get<uint64_t>()));
  }
  return {};
}

Result<void> read_template(const json& component, PostProcessor& result) {
  const json* single = member(component, "single");
  if (single == nullptr || !single->is_array())
    return fail(ErrorCode::kBadFile, "[tokenizer.json] TemplateProcessing wanted with a list 'single'");
  bool seen_text = false;
  for (const json& piece : *single) {
    if (const json* special = member(piece, "SpecialToken")) {
      DOPPLER_CHECK_OK(append_template_ids(component, string_or(*special, "id", ""),
                                           seen_text ? result.suffix : result.prefix));
    } else if (member(piece, "Sequence") != nullptr && !seen_text) {
      seen_text = true;
    } else {
      return fail(ErrorCode::kUnsupported,
                  "[tokenizer.json] a template wanted of special tokens and one sequence");
    }
  }
  return {};
}

// The id of a pair [text, id].
Result<int32_t> read_pair_id(const json& component, const char* key) {
  const json* pair = member(component, key);
  if (pair == nullptr || !pair->is_array() || pair->size() != 2 || !(*pair)[1].is_number_unsigned() ||
      (*pair)[1].get<uint64_t>() > INT32_MAX)
    return fail(ErrorCode::kBadFile, "[tokenizer.json] the post-processor's '{}' wanted as [text, id]", key);
  return static_cast<int32_t>((*pair)[1].get<uint64_t>());
}

}  // namespace

Result<DecoderPart> read_decoder(std::string_view text) {
  DOPPLER_TRY(const json root, parse(text, "decoder"));
  DecoderPart part;
  DOPPLER_CHECK_OK(walk(root, "decoder", "decoders", [&](const json& c) -> Result<void> {
    const std::string type = string_or(c, "type", "");
    if (type == "ByteLevel") {
      part.byte_level = true;
    } else if (type == "ByteFallback") {
      part.rules.byte_fallback = true;
    } else if (type == "Fuse") {
      // tokens are always joined
    } else if (type == "Metaspace") {
      if (string_or(c, "replacement", string_or(c, "str_rep", kMetaspace)) != kMetaspace)
        return fail(ErrorCode::kUnsupported, "[tokenizer.json] a Metaspace decoder wanted for U+2581");
      DOPPLER_TRY(const auto prepend, read_prepend(c));
      part.rules.metaspace = true;
      part.rules.strip_start = prepend != PreTokenizerStep::Prepend::kNever;
    } else if (type == "WordPiece") {
      part.rules.word_pieces = true;
      part.rules.cleanup = bool_or(c, "cleanup", true);
      part.subword_prefix = string_or(c, "prefix", "##");
    } else if (type == "BPEDecoder") {
      part.rules.word_end = string_or(c, "suffix", "</w>");
    } else if (type == "Replace") {
      DOPPLER_TRY(const Pattern pattern, read_pattern(c, "Replace"));
      if (pattern.regex || pattern.text != "\xe2\x96\x81" || string_or(c, "content", "") != " ")
        return fail(ErrorCode::kUnsupported,
                    "[tokenizer.json] a Replace decoder wanted from U+2581 to a space");
      part.rules.metaspace = true;
    } else if (type == "Strip") {
      const json* start = member(c, "start");
      const json* stop = member(c, "stop");
      const bool one = start != nullptr && *start == 1 && (stop == nullptr || *stop == 0);
      if (!one || string_or(c, "content", "") != " ")
        return fail(ErrorCode::kUnsupported,
                    "[tokenizer.json] a Strip decoder wanted for one space at the start");
      part.rules.strip_start = true;
    } else {
      return fail(ErrorCode::kUnsupported, "[tokenizer.json] the decoder '{}' is not supported", shown(type));
    }
    return {};
  }));
  return part;
}

Result<PostProcessor> read_post_processor(std::string_view text) {
  DOPPLER_TRY(const json root, parse(text, "post_processor"));
  PostProcessor result;
  DOPPLER_CHECK_OK(walk(root, "post_processor", "processors", [&](const json& c) -> Result<void> {
    const std::string type = string_or(c, "type", "");
    if (type == "TemplateProcessing") return read_template(c, result);
    if (type == "ByteLevel") return {};  // it only moves offsets
    if (type == "BertProcessing" || type == "RobertaProcessing") {
      DOPPLER_TRY(const int32_t cls, read_pair_id(c, "cls"));
      DOPPLER_TRY(const int32_t sep, read_pair_id(c, "sep"));
      result.prefix.push_back(cls);
      result.suffix.insert(result.suffix.begin(), sep);
      return {};
    }
    return fail(ErrorCode::kUnsupported, "[tokenizer.json] the post-processor '{}' is not supported",
                shown(type));
  }));
  return result;
}

Result<std::vector<AddedTokenText>> read_added_tokens(std::string_view text) {
  DOPPLER_TRY(const json root, parse(text, "added_tokens"));
  std::vector<AddedTokenText> tokens;
  if (root.is_null()) return tokens;
  if (!root.is_array()) return fail(ErrorCode::kBadFile, "[tokenizer.json] added_tokens wanted as a list");
  for (const json& c : root) {
    const json* id = member(c, "id");
    const json* content = member(c, "content");
    if (id == nullptr || !id->is_number_unsigned() || id->get<uint64_t>() > INT32_MAX || content == nullptr ||
        !content->is_string())
      return fail(ErrorCode::kBadFile, "[tokenizer.json] an added token wanted with an id and a content");
    AddedTokenText token;
    token.token = {.id = static_cast<int32_t>(id->get<uint64_t>()),
                   .lstrip = bool_or(c, "lstrip", false),
                   .rstrip = bool_or(c, "rstrip", false),
                   .single_word = bool_or(c, "single_word", false),
                   .normalized = bool_or(c, "normalized", false)};
    token.content = content->get<std::string>();
    token.special = bool_or(c, "special", false);
    tokens.push_back(std::move(token));
  }
  return tokens;
}

Result<TokenizerConfig> read_tokenizer_config(std::string_view text) {
  DOPPLER_TRY(const json root, parse(text, "tokenizer_config.json"));
  TokenizerConfig config;
  if (root.is_null()) return config;
  if (!root.is_object())
    return fail(ErrorCode::kBadFile, "[tokenizer.json] tokenizer_config.json wanted as an object");
  const auto token = [&](const char* key) {
    const json* value = member(root, key);
    if (value != nullptr && value->is_object()) return string_or(*value, "content", "");
    return string_or(root, key, "");
  };
  const auto flag = [&](const char* key) {
    const json* value = member(root, key);
    return value != nullptr && value->is_boolean() ? std::optional<bool>(value->get<bool>()) : std::nullopt;
  };
  config.bos = token("bos_token");
  config.eos = token("eos_token");
  config.unk = token("unk_token");
  config.pad = token("pad_token");
  config.tokenizer_class = string_or(root, "tokenizer_class", "");
  config.add_bos = flag("add_bos_token");
  config.add_eos = flag("add_eos_token");
  return config;
}

}  // namespace doppler::tokenizer_json
