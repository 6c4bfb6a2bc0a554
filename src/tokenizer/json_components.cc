#include "tokenizer/json_components.h"

#include <nlohmann/json.hpp>

#include "tokenizer/utf8.h"

namespace doppler::tokenizer_json {
namespace {

using nlohmann::json;

constexpr int kMaxNesting = 8;  // Sequences inside Sequences

Result<json> parse(std::string_view text, std::string_view what) {
  if (text.empty()) return json(nullptr);
  json value = json::parse(text, nullptr, false);
  if (value.is_discarded()) return fail(ErrorCode::kBadFile, "[tokenizer.json] {} is not valid JSON", what);
  return value;
}

const json* member(const json& object, const char* key) {
  if (!object.is_object()) return nullptr;
  const auto it = object.find(key);
  return it == object.end() ? nullptr : &*it;
}

std::string string_or(const json& object, const char* key, std::string fallback) {
  const json* value = member(object, key);
  return value != nullptr && value->is_string() ? value->get<std::string>() : std::move(fallback);
}

bool bool_or(const json& object, const char* key, bool fallback) {
  const json* value = member(object, key);
  return value != nullptr && value->is_boolean() ? value->get<bool>() : fallback;
}

std::string shown(std::string_view name) { return utf8::sanitize(name.substr(0, 64)); }

// Calls each(component) for a component or, through Sequences, for every part of it.
template <class Each>
Result<void> walk(const json& component, const char* what, const char* list_key, int depth, Each&& each) {
  if (component.is_null()) return {};
  if (!component.is_object() || string_or(component, "type", "").empty())
    return fail(ErrorCode::kBadFile, "[tokenizer.json] {} wanted as an object with a type", what);
  if (string_or(component, "type", "") != "Sequence") return each(component);
  const json* list = member(component, list_key);
  if (list == nullptr || !list->is_array() || depth >= kMaxNesting)
    return fail(ErrorCode::kBadFile,
                "[tokenizer.json] a Sequence in {} wanted with a list '{}', at most {} deep", what, list_key,
                kMaxNesting);
  for (const json& part : *list) DOPPLER_CHECK_OK(walk(part, what, list_key, depth + 1, each));
  return {};
}

struct Pattern {
  std::string text;
  bool regex;
};

Result<Pattern> read_pattern(const json& component, const char* what) {
  const json* pattern = member(component, "pattern");
  if (pattern != nullptr) {
    if (const json* text = member(*pattern, "String"); text != nullptr && text->is_string())
      return Pattern{text->get<std::string>(), false};
    if (const json* text = member(*pattern, "Regex"); text != nullptr && text->is_string())
      return Pattern{text->get<std::string>(), true};
  }
  return fail(ErrorCode::kBadFile, "[tokenizer.json] {} wanted with a pattern {{String or Regex}}", what);
}

Result<SplitBehavior> read_behavior(const json& component) {
  const std::string name = string_or(component, "behavior", "");
  if (name == "Removed") return SplitBehavior::kRemoved;
  if (name == "Isolated") return SplitBehavior::kIsolated;
  if (name == "MergedWithPrevious") return SplitBehavior::kMergedWithPrevious;
  if (name == "MergedWithNext") return SplitBehavior::kMergedWithNext;
  if (name == "Contiguous") return SplitBehavior::kContiguous;
  return fail(ErrorCode::kUnsupported, "[tokenizer.json] the split behavior '{}' is not known", shown(name));
}

Result<PreTokenizerStep::Prepend> read_prepend(const json& component) {
  using Prepend = PreTokenizerStep::Prepend;
  const bool old_default = bool_or(component, "add_prefix_space", true);  // files before prepend_scheme
  const std::string name = string_or(component, "prepend_scheme", old_default ? "always" : "never");
  if (name == "always") return Prepend::kAlways;
  if (name == "first") return Prepend::kFirst;
  if (name == "never") return Prepend::kNever;
  return fail(ErrorCode::kUnsupported, "[tokenizer.json] the Metaspace prepend_scheme '{}' is not known",
              shown(name));
}

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

}  // namespace

Result<std::vector<NormalizerStep>> read_normalizer(std::string_view text) {
  using Op = NormalizerStep::Op;
  DOPPLER_TRY(const json root, parse(text, "normalizer"));
  std::vector<NormalizerStep> steps;
  DOPPLER_CHECK_OK(walk(root, "normalizer", "normalizers", 0, [&](const json& c) -> Result<void> {
    const std::string type = string_or(c, "type", "");
    if (type == "Replace") {
      DOPPLER_TRY(Pattern pattern, read_pattern(c, "Replace"));
      steps.push_back({pattern.regex ? Op::kReplaceRegex : Op::kReplace, std::move(pattern.text),
                       string_or(c, "content", "")});
    } else if (type == "Prepend") {
      steps.push_back({Op::kPrepend, {}, string_or(c, "prepend", "")});
    } else if (type == "NFC") {
      steps.push_back({Op::kNfc, {}, {}});
    } else if (type == "NFD") {
      steps.push_back({Op::kNfd, {}, {}});
    } else if (type == "NFKC") {
      steps.push_back({Op::kNfkc, {}, {}});
    } else if (type == "NFKD") {
      steps.push_back({Op::kNfkd, {}, {}});
    } else {
      return fail(ErrorCode::kUnsupported, "[tokenizer.json] the normalizer '{}' is not supported",
                  shown(type));
    }
    return {};
  }));
  return steps;
}

Result<std::vector<PreTokenizerStep>> read_pre_tokenizer(std::string_view text) {
  using Op = PreTokenizerStep::Op;
  DOPPLER_TRY(const json root, parse(text, "pre_tokenizer"));
  std::vector<PreTokenizerStep> steps;
  DOPPLER_CHECK_OK(walk(root, "pre_tokenizer", "pretokenizers", 0, [&](const json& c) -> Result<void> {
    const std::string type = string_or(c, "type", "");
    PreTokenizerStep step;
    if (type == "Split") {
      DOPPLER_TRY(Pattern pattern, read_pattern(c, "Split"));
      step.op = pattern.regex ? Op::kSplitRegex : Op::kSplitLiteral;
      step.pattern = std::move(pattern.text);
      DOPPLER_TRY(step.behavior, read_behavior(c));
      step.invert = bool_or(c, "invert", false);
    } else if (type == "Digits") {
      step.op = Op::kDigits;
      step.individual = bool_or(c, "individual_digits", false);
    } else if (type == "ByteLevel") {
      step.op = Op::kByteLevel;
      step.add_prefix_space = bool_or(c, "add_prefix_space", true);
      step.use_regex = bool_or(c, "use_regex", true);
    } else if (type == "Metaspace") {
      step.op = Op::kMetaspace;
      step.pattern = string_or(c, "replacement", "\xe2\x96\x81");
      step.split = bool_or(c, "split", true);
      DOPPLER_TRY(step.prepend, read_prepend(c));
    } else {
      return fail(ErrorCode::kUnsupported, "[tokenizer.json] the pre-tokenizer '{}' is not supported",
                  shown(type));
    }
    steps.push_back(std::move(step));
    return {};
  }));
  return steps;
}

Result<DecoderPart> read_decoder(std::string_view text) {
  DOPPLER_TRY(const json root, parse(text, "decoder"));
  DecoderPart part;
  DOPPLER_CHECK_OK(walk(root, "decoder", "decoders", 0, [&](const json& c) -> Result<void> {
    const std::string type = string_or(c, "type", "");
    if (type == "ByteLevel") {
      part.byte_level = true;
    } else if (type == "ByteFallback") {
      part.rules.byte_fallback = true;
    } else if (type == "Fuse") {
      // tokens are always joined
    } else if (type == "Metaspace") {
      if (string_or(c, "replacement", "\xe2\x96\x81") != "\xe2\x96\x81")
        return fail(ErrorCode::kUnsupported, "[tokenizer.json] a Metaspace decoder wanted for U+2581");
      DOPPLER_TRY(const auto prepend, read_prepend(c));
      part.rules.metaspace = true;
      part.rules.strip_start = prepend != PreTokenizerStep::Prepend::kNever;
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
  DOPPLER_CHECK_OK(walk(root, "post_processor", "processors", 0, [&](const json& c) -> Result<void> {
    const std::string type = string_or(c, "type", "");
    if (type == "TemplateProcessing") return read_template(c, result);
    if (type == "ByteLevel") return {};  // it only moves offsets
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
