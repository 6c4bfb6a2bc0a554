#pragma once
// Checked look-ups of "<architecture>.<key>" metadata. Errors name the key, the value and what is allowed.
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "base/result.h"
#include "formats/gguf/gguf.h"

namespace doppler::model {

class GgufKeys {
 public:
  GgufKeys(const gguf::GgufFile& file, std::string_view architecture)
      : file_(file), architecture_(architecture) {}

  std::string key(std::string_view name) const { return architecture_ + "." + std::string(name); }

  Result<std::optional<uint32_t>> find_count(std::string_view name, uint64_t least, uint64_t most) const;
  Result<uint32_t> count(std::string_view name, uint64_t least, uint64_t most) const;  // must be there

  /// A finite number in [least, most].
  Result<std::optional<float>> find_number(std::string_view name, double least, double most) const;
  Result<float> number(std::string_view name, double least, double most) const;  // must be there

  Result<std::string> text(std::string_view name) const;  // "" if absent

 private:
  const gguf::GgufFile& file_;
  std::string architecture_;
};

}  // namespace doppler::model
