#pragma once
// Checked look-ups in a config.json. Errors name the file, the key, the value and what is allowed.
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace doppler::model {

class HfKeys {
 public:
  /// Parses a JSON file that must hold an object.
  static Result<HfKeys> read(const std::string& path);

  /// The same for text that is there already; `path` names it in errors.
  static Result<HfKeys> parse(std::string_view text, std::string path);

  bool has(std::string_view key) const;                     // there, and not null
  std::optional<HfKeys> child(std::string_view key) const;  // an object inside this one

  Result<std::optional<uint32_t>> find_count(std::string_view key, uint64_t least, uint64_t most) const;
  Result<uint32_t> count(std::string_view key, uint64_t least, uint64_t most) const;  // must be there

  /// A finite number in [least, most].
  Result<std::optional<float>> find_number(std::string_view key, double least, double most) const;
  Result<bool> flag(std::string_view key, bool otherwise) const;
  Result<std::string> text(std::string_view key) const;                    // "" if absent
  Result<std::vector<std::string>> texts(std::string_view key) const;      // a list; empty if absent
  Result<std::vector<float>> numbers(std::string_view key) const;          // a list of finite numbers
  Result<std::vector<int64_t>> whole_numbers(std::string_view key) const;  // one or a list

  const std::string& path() const;

 private:
  struct Data;
  explicit HfKeys(std::shared_ptr<const Data> data) : data_(std::move(data)) {}
  std::shared_ptr<const Data> data_;
};

}  // namespace doppler::model
