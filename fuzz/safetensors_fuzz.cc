// Reads the input as a safetensors header and touches every byte of every tensor it accepts.
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <vector>

#include "formats/safetensors/safetensors.h"

namespace {

using namespace doppler;

// What the compiler cannot drop: every byte read ends up here.
volatile unsigned g_sink = 0;

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  std::vector<std::byte> bytes(size);
  if (size > 0) std::memcpy(bytes.data(), data, size);
  const auto source = memory_source("fuzz.safetensors", std::move(bytes));
  const auto header = safetensors::read_header(*source);
  if (!header) return 0;
  uint64_t total = 0;
  for (const TensorInfo& tensor : header->tensors) {
    const auto view = source->view(tensor.offset, tensor.size_bytes);
    if (!view) __builtin_trap();  // read_header() promised that the data is there
    for (const std::byte b : *view) g_sink = g_sink + static_cast<unsigned>(b);
    total += tensor.size_bytes;
  }
  if (total > size) __builtin_trap();  // tensors do not overlap
  return 0;
}
