#pragma once
// Types shared by the public interface and the engine behind it. Needs only the standard library and
// tl::expected (one header).
#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <tl/expected.hpp>

namespace doppler {

enum class ErrorCode : uint8_t {
  kBadFile,      // a file's contents are malformed
  kBadInput,     // a caller's or user's argument is wrong
  kNotFound,     // a file, tensor, model or device does not exist
  kUnsupported,  // well-formed, but not something this build can run
  kOutOfMemory,  // host or device memory
  kDeviceLost,   // the GPU went away; the device can be created again
  kGpu,          // shader, validation or internal error of the WebGPU library
  kIo,           // the operating system refused
  kCancelled,
};

/// What went wrong. `message` reads "[where] what was wanted, what was got; the cure".
struct Error {
  ErrorCode code;
  std::string message;
};

/// A value, or the error that kept it from being made: `if (!result) use(result.error().message);`
template <class T>
using Result = tl::expected<T, Error>;

/// Progress of long work: called with the work's name and how far it is. Returning false asks it to stop
/// (kCancelled). Cheap enough to call per tensor, not per value.
using Progress = std::function<bool(std::string_view what, uint64_t done_bytes, uint64_t total_bytes)>;

enum class Precision { kFast, kExact };  // fast: int8 activations in the products with packed weights
enum class KvType { kF16, kF32 };        // how keys and values are cached

/// Experts that were loaded onto the device as they were asked for, A layer asks once a pass for each
/// different expert of its tokens.
struct ExpertStats {
  uint64_t hits = 0, misses = 0;  // were there, had to come: together what was asked for
  uint64_t prefetched = 0;        // of the misses: read and packed before they were asked for
  uint64_t bytes_loaded = 0;
  uint64_t slots = 0, slots_wanted = 0;  // experts that the device holds, that the model has
  uint64_t slot_bytes = 0;               // of all slots
};

}  // namespace doppler
