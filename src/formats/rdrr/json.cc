#include "formats/rdrr/json.h"

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>
#include <set>

namespace doppler::rdrr {
namespace {

using nlohmann::json;

constexpr int kMaxDepth = 64;
constexpr double kMaxWhole = 9007199254740992.0;  // 2^53: beyond it JSON numbers are not exact

const json& as_json(const void* node) { return *static_cast<const json*>(node); }

/// Depth of brackets outside strings: checked first, since writing a value back recurses.
bool nested_too_deep(std::string_view text) {
  int depth = 0;
  bool in_string = false;
  for (size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    if (in_string) {
      if (c == '\\')
        ++i;
      else if (c == '"')
        in_string = false;
    } else if (c == '"') {
      in_string = true;
    } else if (c == '{' || c == '[') {
      if (++depth > kMaxDepth) return true;
    } else if (c == '}' || c == ']') {
      --depth;
    }
  }
  return false;
}

}  // namespace

bool Json::is_null() const { return node_ && as_json(node_).is_null(); }
bool Json::is_object() const { return node_ && as_json(node_).is_object(); }
bool Json::is_array() const { return node_ && as_json(node_).is_array(); }

std::optional<bool> Json::as_bool() const {
  if (!node_ || !as_json(node_).is_boolean()) return std::nullopt;
  return as_json(node_).get<bool>();
}

std::optional<double> Json::as_number() const {
  if (!node_ || !as_json(node_).is_number()) return std::nullopt;
  const double value = as_json(node_).get<double>();
  if (!std::isfinite(value)) return std::nullopt;
  return value;
}

std::optional<uint64_t> Json::as_uint() const {
  const std::optional<double> value = as_number();
  if (!value || *value < 0 || *value > kMaxWhole || *value != std::floor(*value)) return std::nullopt;
  return static_cast<uint64_t>(*value);
}

std::optional<std::string> Json::as_string() const {
  if (!node_ || !as_json(node_).is_string()) return std::nullopt;
  return as_json(node_).get<std::string>();
}

Json Json::get(std::string_view key) const {
  if (!is_object()) return Json();
  const auto found = as_json(node_).find(std::string(key));
  return found == as_json(node_).end() ? Json() : Json(&*found);
}

std::vector<Json> Json::items() const {
  std::vector<Json> out;
  if (is_array())
    for (const json& item : as_json(node_)) out.push_back(Json(&item));
  return out;
}

std::vector<std::pair<std::string, Json>> Json::members() const {
  std::vector<std::pair<std::string, Json>> out;
  if (is_object())
    for (const auto& [key, value] : as_json(node_).items()) out.emplace_back(key, Json(&value));
  return out;
}

std::string Json::text() const {
  return node_ ? as_json(node_).dump(-1, ' ', false, json::error_handler_t::replace) : "null";
}

std::string_view Json::type_name() const { return node_ ? as_json(node_).type_name() : "nothing"; }

Result<JsonDocument> JsonDocument::parse(std::string_view text, std::string_view where) {
  if (nested_too_deep(text))
    return doppler::fail(ErrorCode::kBadFile, "[{}] JSON nested deeper than {}; the file is damaged", where,
                         kMaxDepth);
  std::vector<std::set<std::string>> open;  // keys seen in each open object
  std::string repeated;
  const auto watch = [&](int, json::parse_event_t event, json& value) {
    if (event == json::parse_event_t::object_start) open.emplace_back();
    if (event == json::parse_event_t::object_end) open.pop_back();
    if (event == json::parse_event_t::key && !open.back().insert(value.get<std::string>()).second &&
        repeated.empty())
      repeated = value.get<std::string>();
    return true;
  };
  auto document = std::make_shared<json>(json::parse(text, watch, false));
  if (document->is_discarded())
    return doppler::fail(ErrorCode::kBadFile, "[{}] not valid JSON ({} bytes); the file is damaged", where,
                         text.size());
  if (!repeated.empty())
    return doppler::fail(ErrorCode::kBadFile, "[{}] key \"{}\" appears twice in one object", where, repeated);
  return JsonDocument(std::move(document));
}

Fields::Fields(Json object, std::string where, Result<void>& status)
    : object_(object), where_(std::move(where)), status_(status) {
  if (object_ && !object_.is_object()) fail("an object wanted, got {}", object_.type_name());
}

Json Fields::take(std::string_view key) {
  seen_.emplace_back(key);
  return object_.get(key);
}

void Fields::note(std::string text) {
  if (status_) status_ = doppler::fail(ErrorCode::kBadFile, "[{}] {}", where_, text);
}

void Fields::wrong(std::string_view key, std::string_view wanted, Json got) {
  std::string shown = got ? got.text() : "nothing";
  if (shown.size() > 40) shown = std::string(got.type_name());
  fail("\"{}\": {} wanted, got {}", key, wanted, shown);
}

std::string Fields::string(std::string_view key) {
  const Json value = take(key);
  std::optional<std::string> text = value.as_string();
  if (!text || text->empty()) wrong(key, "a text", value);
  return text.value_or("");
}

uint64_t Fields::uint(std::string_view key, uint64_t min, uint64_t max) {
  const Json value = take(key);
  const std::optional<uint64_t> number = value.as_uint();
  if (!number || *number < min || *number > max) {
    wrong(key, fmt::format("a whole number from {} to {}", min, max), value);
    return min;
  }
  return *number;
}

bool Fields::boolean(std::string_view key, bool absent) { return optional_bool(key).value_or(absent); }

std::optional<std::string> Fields::optional_string(std::string_view key) {
  const Json value = take(key);
  if (!value || value.is_null()) return std::nullopt;
  std::optional<std::string> text = value.as_string();
  if (!text) wrong(key, "a text or null", value);
  return text;
}

std::optional<double> Fields::optional_number(std::string_view key) {
  const Json value = take(key);
  if (!value || value.is_null()) return std::nullopt;
  const std::optional<double> number = value.as_number();
  if (!number) wrong(key, "a number or null", value);
  return number;
}

std::optional<bool> Fields::optional_bool(std::string_view key) {
  const Json value = take(key);
  if (!value || value.is_null()) return std::nullopt;
  const std::optional<bool> flag = value.as_bool();
  if (!flag) wrong(key, "true, false or null", value);
  return flag;
}

std::optional<uint64_t> Fields::optional_uint(std::string_view key, uint64_t min, uint64_t max) {
  const Json value = take(key);
  if (!value || value.is_null()) return std::nullopt;
  const std::optional<uint64_t> number = value.as_uint();
  if (!number || *number < min || *number > max) {
    wrong(key, fmt::format("a whole number from {} to {}, or null,", min, max), value);
    return std::nullopt;
  }
  return number;
}

std::vector<uint64_t> Fields::uints(std::string_view key, uint64_t max) {
  std::vector<uint64_t> out;
  for (const Json item : array(key).items()) {
    const std::optional<uint64_t> number = item.as_uint();
    if (!number || *number > max) {
      wrong(key, fmt::format("whole numbers from 0 to {}", max), item);
      return {};
    }
    out.push_back(*number);
  }
  return out;
}

std::vector<std::string> Fields::strings(std::string_view key) {
  std::vector<std::string> out;
  for (const Json item : array(key).items()) {
    std::optional<std::string> text = item.as_string();
    if (!text) {
      wrong(key, "a list of texts", item);
      return {};
    }
    out.push_back(std::move(*text));
  }
  return out;
}

Json Fields::object(std::string_view key) {
  const Json value = take(key);
  if (!value || value.is_null()) return Json();
  if (!value.is_object()) {
    wrong(key, "an object", value);
    return Json();
  }
  return value;
}

Json Fields::array(std::string_view key) {
  const Json value = take(key);
  if (!value || value.is_null()) return Json();
  if (!value.is_array()) {
    wrong(key, "a list", value);
    return Json();
  }
  return value;
}

Json Fields::any(std::string_view key) { return take(key); }

RawMembers Fields::rest() const {
  RawMembers out;
  for (const auto& [key, value] : object_.members())
    if (std::find(seen_.begin(), seen_.end(), key) == seen_.end()) out.emplace_back(key, value.text());
  return out;
}

}  // namespace doppler::rdrr
