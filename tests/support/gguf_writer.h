#pragma once
// Writes GGUF files for tests: any metadata, any tensors, and on purpose also files that break the rules.
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <optional>
#include <span>
#include <string>
#include <type_traits>
#include <vector>

#include "base/dtype.h"
#include "formats/gguf/gguf.h"

namespace doppler::test {

/// The GGUF type number of a C++ type (a std::string has its own setters).
template <class T>
constexpr gguf::ValueType gguf_type() {
  using enum gguf::ValueType;
  if constexpr (std::is_same_v<T, bool>) return kBool;
  if constexpr (std::is_same_v<T, float>) return kF32;
  if constexpr (std::is_same_v<T, double>) return kF64;
  constexpr bool sign = std::is_signed_v<T>;
  if constexpr (sizeof(T) == 1) return sign ? kI8 : kU8;
  if constexpr (sizeof(T) == 2) return sign ? kI16 : kU16;
  if constexpr (sizeof(T) == 4) return sign ? kI32 : kU32;
  return sign ? kI64 : kU64;
}

class GgufWriter {
 public:
  struct Pair {
    std::string key;
    uint32_t type;                 // any number: wrong ones are written as they are
    std::vector<std::byte> value;  // as it stands in the file
  };
  struct Tensor {
    std::string name;
    std::vector<uint64_t> shape;  // row-major; written fastest first
    uint32_t type;                // ggml number
    std::vector<std::byte> data;
    std::optional<uint64_t> offset;  // what the table says instead of the real place
  };

  // Open to tests that break something.
  uint32_t version = 3;
  uint64_t alignment = 32;  // of the layout; what general.alignment says is set apart
  std::vector<Pair> pairs;
  std::vector<Tensor> tensors;

  template <class T>
  void set(const std::string& key, T value) {
    put(key, static_cast<uint32_t>(gguf_type<T>()), raw(std::span<const T>(&value, 1)));
  }
  void set_string(const std::string& key, const std::string& text);
  template <class T>
  void set_array(const std::string& key, const std::vector<T>& values) {
    const std::span<const T> view(values);
    put_array(key, static_cast<uint32_t>(gguf_type<T>()), values.size(), raw(view));
  }
  void set_strings(const std::string& key, const std::vector<std::string>& texts);
  void put_array(const std::string& key, uint32_t type, uint64_t count, std::vector<std::byte> elements);
  void put(const std::string& key, uint32_t type, std::vector<std::byte> value);  // replaces the key's value
  void erase(const std::string& key);

  /// Packs `values` (row-major, product of `shape`) as `dtype`.
  void add(const std::string& name, DType dtype, std::vector<uint64_t> shape,
           const std::vector<float>& values);
  Tensor& tensor(const std::string& name);  // must exist

  /// The file. `boundaries`, if given, receives every place where one field or section ends.
  std::vector<std::byte> bytes(std::vector<size_t>* boundaries = nullptr) const;
  void write(const std::string& path) const;

  template <class T>
  static std::vector<std::byte> raw(std::span<const T> values) {
    std::vector<std::byte> out(values.size_bytes());
    if (!out.empty()) std::memcpy(out.data(), values.data(), out.size());
    return out;
  }
};

}  // namespace doppler::test
