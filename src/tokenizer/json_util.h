#pragma once
// Checked access to JSON that may hold anything.
#include <functional>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <string_view>

#include "base/result.h"
#include "tokenizer/vocab.h"

namespace doppler::tokenizer_json {

/// The JSON text `text` ("" is null). Errors: kBadFile if it is malformed; `what` names the part.
Result<nlohmann::json> parse(std::string_view text, std::string_view what);

/// The member `key`, or nullptr if `object` is no object or lacks it.
const nlohmann::json* member(const nlohmann::json& object, const char* key);

/// The member's value if it has the type wanted, or `fallback`.
std::string string_or(const nlohmann::json& object, const char* key, std::string fallback);
bool bool_or(const nlohmann::json& object, const char* key, bool fallback);

/// Calls `each` for a component or, through Sequences (whose parts are the list `list_key`), for every part
/// of it; not at all for null. Errors: kBadFile for a component without a type or Sequences nested too deep.
Result<void> walk(const nlohmann::json& component, const char* what, const char* list_key,
                  const std::function<Result<void>(const nlohmann::json&)>& each);

struct Pattern {
  std::string text;
  bool regex;
};

/// {"pattern": {"String": ...}} or {"pattern": {"Regex": ...}}.
Result<Pattern> read_pattern(const nlohmann::json& component, const char* what);

/// How a Metaspace marks the start, by prepend_scheme or the add_prefix_space of older files.
Result<PreTokenizerStep::Prepend> read_prepend(const nlohmann::json& component);

/// A name out of a file, short and well-formed enough for a message.
std::string shown(std::string_view name);

}  // namespace doppler::tokenizer_json
