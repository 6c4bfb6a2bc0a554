#include "tokenizer/json_util.h"

#include <nlohmann/json.hpp>

#include "tokenizer/utf8.h"

namespace doppler::tokenizer_json {

using nlohmann::json;

namespace {

constexpr int kMaxNesting = 8;  // Sequences inside Sequences

Result<void> walk_nested(const json& component, const char* what, const char* list_key, int depth,
                         const std::function<Result<void>(const json&)>& each) {
  if (component.is_null()) return {};
  if (!component.is_object() || string_or(component, "type", "").empty())
    return fail(ErrorCode::kBadFile, "[tokenizer.json] {} wanted as an object with a type", what);
  if (string_or(component, "type", "") != "Sequence") return each(component);
  const json* list = member(component, list_key);
  if (list == nullptr || !list->is_array() || depth >= kMaxNesting)
    return fail(ErrorCode::kBadFile,
                "[tokenizer.json] a Sequence in {} wanted with a list '{}', at most {} deep", what, list_key,
                kMaxNesting);
  for (const json& part : *list) DOPPLER_CHECK_OK(walk_nested(part, what, list_key, depth + 1, each));
  return {};
}

}  // namespace

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

Result<void> walk(const json& component, const char* what, const char* list_key,
                  const std::function<Result<void>(const json&)>& each) {
  return walk_nested(component, what, list_key, 0, each);
}

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

std::string shown(std::string_view name) { return utf8::sanitize(name.substr(0, 64)); }

}  // namespace doppler::tokenizer_json
