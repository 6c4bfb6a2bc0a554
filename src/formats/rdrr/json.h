#pragma once
// Reading JSON that may be hostile: nothing is assumed about any type, and every error says where it was.
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/result.h"

namespace doppler::rdrr {

/// Object members kept as they came: key and compact JSON text of the value.
using RawMembers = std::vector<std::pair<std::string, std::string>>;

/// One value of a parsed document, or nothing (a key that is not there). Valid as long as its JsonDocument.
class Json {
 public:
  Json() = default;
  explicit operator bool() const { return node_ != nullptr; }

  bool is_null() const;
  bool is_object() const;
  bool is_array() const;
  std::optional<bool> as_bool() const;
  std::optional<double> as_number() const;  // finite
  std::optional<uint64_t> as_uint() const;  // a whole number from 0 to 2^53, also written 1.0 or 1e3
  std::optional<std::string> as_string() const;

  Json get(std::string_view key) const;                       // member of an object
  std::vector<Json> items() const;                            // elements of an array
  std::vector<std::pair<std::string, Json>> members() const;  // of an object, in key order
  std::string text() const;                                   // compact JSON
  std::string_view type_name() const;                         // for messages

 private:
  friend class JsonDocument;
  explicit Json(const void* node) : node_(node) {}
  const void* node_ = nullptr;
};

/// An owned, parsed document.
class JsonDocument {
 public:
  /// Parses UTF-8 text. Errors (naming `where`): not JSON, nested deeper than 64, the same key twice in an
  /// object.
  static Result<JsonDocument> parse(std::string_view text, std::string_view where);
  Json root() const { return Json(node_.get()); }

 private:
  explicit JsonDocument(std::shared_ptr<const void> node) : node_(std::move(node)) {}
  std::shared_ptr<const void> node_;
};

/// Reads the members of one object by key. The first error is kept in `status` (shared by all sections of a
/// document), reads after it return defaults, so that a section reads as a plain list of fields.
/// Optional fields are absent when the key is missing or null.
class Fields {
 public:
  Fields(Json object, std::string where, Result<void>& status);

  std::string string(std::string_view key);                         // required, not empty
  uint64_t uint(std::string_view key, uint64_t min, uint64_t max);  // required
  bool boolean(std::string_view key, bool absent);
  std::optional<std::string> optional_string(std::string_view key);
  std::optional<double> optional_number(std::string_view key);
  std::optional<bool> optional_bool(std::string_view key);
  std::optional<uint64_t> optional_uint(std::string_view key, uint64_t min, uint64_t max);
  std::vector<uint64_t> uints(std::string_view key, uint64_t max);  // array of whole numbers; empty if absent
  std::vector<std::string> strings(std::string_view key);           // array of strings; empty if absent
  Json object(std::string_view key);                                // an object, or nothing if absent or null
  Json array(std::string_view key);
  Json any(std::string_view key);

  RawMembers rest() const;  // members that nobody asked for
  const std::string& where() const { return where_; }
  template <class... Args>
  void fail(fmt::format_string<Args...> format, Args&&... args) {
    note(fmt::format(format, std::forward<Args>(args)...));
  }

 private:
  Json take(std::string_view key);
  void note(std::string text);  // keeps the first error
  void wrong(std::string_view key, std::string_view wanted, Json got);

  Json object_;
  std::string where_;
  Result<void>& status_;
  std::vector<std::string> seen_;
};

}  // namespace doppler::rdrr
