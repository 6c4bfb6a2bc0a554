#pragma once
// Expands the embedded shader sources. Directives, each on a line of its own:
//   #include "path"   another embedded file (a define of that name may stand for the quoted path)
//   #if NAME, #if !NAME, #else, #endif     NAME is false when undefined, "", "0" or "0u"
//   #unroll v N … #end    N copies of the lines with {v} replaced by 0, 1, …; N a number or a define
// Other lines have whole words that are defines replaced, and @binding(next) numbered 0, 1, … in order.
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/result.h"

namespace doppler::kernels {

/// Names and their replacement text. Few, so a plain list.
class Defines {
 public:
  Defines& set(std::string_view name, std::string_view text);
  Defines& number(std::string_view name, uint32_t value);  // "64u"
  Defines& flag(std::string_view name, bool value);        // "1u" or "0u"
  const std::string* find(std::string_view name) const;
  std::string key() const;  // equal for equal defines set in the same order

 private:
  std::vector<std::pair<std::string, std::string>> list_;
};

/// Expands `text`, which errors call `name`.
Result<std::string> expand_wgsl_text(std::string_view name, std::string_view text, const Defines& defines);

/// Expands the embedded file `path`; remembers the result, which lives as long as the process. Thread-safe.
Result<std::string_view> expand_wgsl(std::string_view path, const Defines& defines);

}  // namespace doppler::kernels
