#pragma once
// Progress of long work, told to whoever shows it. Cheap enough to call per tensor, not per value.
#include <cstdint>
#include <functional>
#include <string_view>

namespace doppler {

/// Called with the work's name and how far it is. Returning false asks the work to stop (kCancelled).
using Progress = std::function<bool(std::string_view what, uint64_t done_bytes, uint64_t total_bytes)>;

}  // namespace doppler
