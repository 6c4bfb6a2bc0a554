// Opens the input as a GGUF file and reads all that a loader would.
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <vector>

#include "base/quants.h"
#include "formats/gguf/gguf.h"

namespace {

using namespace doppler;

// What the compiler cannot drop: every byte read ends up here.
volatile unsigned g_sink = 0;

void read_metadata(const gguf::GgufFile& file) {
  unsigned sum = 0;
  for (const auto& [key, value] : file.metadata()) {
    sum += file.get_uint(key).has_value() + file.get_float(key).has_value() + file.get_bool(key).has_value();
    if (const auto ints = file.get_ints(key)) sum += static_cast<unsigned>(ints->size());
    if (const auto floats = file.get_floats(key)) sum += static_cast<unsigned>(floats->size());
    if (const auto text = file.get_string(key); text && *text)
      for (const char c : **text) sum += static_cast<unsigned char>(c);
    if (const auto array = file.get_array(key, gguf::ValueType::kString); array && *array != nullptr)
      for (const std::string_view text : (*array)->strings)
        for (const char c : text) sum += static_cast<unsigned char>(c);
  }
  g_sink = g_sink + sum;
}

void read_tensors(const gguf::GgufFile& file) {
  for (const TensorInfo& tensor : file.tensors()) {
    const auto bytes = file.bytes(tensor);
    if (!bytes) __builtin_trap();  // open() promised that the data is there
    if (!is_runnable(tensor.dtype) || tensor.element_count() > (1u << 20)) continue;
    std::vector<float> values(tensor.element_count());
    dequantize(tensor.dtype, bytes->data.data(), values.size(), values.data());
    g_sink = g_sink + (values.back() > 0 ? 1u : 0u);
    file.release(tensor);
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  std::vector<std::byte> bytes(size);
  if (size > 0) std::memcpy(bytes.data(), data, size);
  const auto file = gguf::GgufFile::open(memory_source("fuzz.gguf", std::move(bytes)));
  if (!file) return 0;
  read_metadata(**file);
  read_tensors(**file);
  return 0;
}
