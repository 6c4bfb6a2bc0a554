#pragma once
// GGUF v2/v3 container (github.com/ggml-org/ggml, docs/gguf.md): metadata, tensor table, mapped data.
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "base/byte_source.h"
#include "base/result.h"
#include "formats/tensor_source.h"

namespace doppler::gguf {

enum class ValueType : uint32_t {
  kU8 = 0,
  kI8,
  kU16,
  kI16,
  kU32,
  kI32,
  kF32,
  kBool,
  kString,
  kArray,
  kU64,
  kI64,
  kF64,
};

/// An array of scalars keeps its raw little-endian bytes (a view of the file); strings are views of the file.
struct Array {
  ValueType type = ValueType::kU8;
  uint64_t count = 0;
  std::span<const std::byte> raw;         // scalars: count * size bytes; empty for strings
  std::vector<std::string_view> strings;  // type kString only
};

struct Value {
  ValueType type = ValueType::kU8;
  std::variant<uint64_t, int64_t, double, bool, std::string_view, Array> data;
};

class GgufFile final : public TensorSource {
 public:
  /// Reads header, metadata and tensor table; checks every bound, name, shape, type, offset and overlap with
  /// the end of the file. Memory stays proportional to the metadata present in the file.
  /// The first file of a split model (NAME-00001-of-00003.gguf) brings the tensors of the others with it.
  static Result<std::unique_ptr<GgufFile>> open(const std::string& path);
  static Result<std::unique_ptr<GgufFile>> open(std::unique_ptr<ByteSource> source);  // a whole model

  uint32_t version() const { return version_; }
  uint64_t alignment() const { return alignment_; }
  const std::vector<std::pair<std::string, Value>>& metadata() const { return metadata_; }
  const Value* value(std::string_view key) const;

  // Typed look-ups: nullopt if absent, an error naming the key if of the wrong type or out of range.
  Result<std::optional<uint64_t>> get_uint(std::string_view key) const;  // any integer type, not negative
  Result<std::optional<double>> get_float(std::string_view key) const;
  Result<std::optional<bool>> get_bool(std::string_view key) const;
  Result<std::optional<std::string_view>> get_string(std::string_view key) const;
  Result<const Array*> get_array(std::string_view key, ValueType type) const;  // nullptr if absent
  Result<std::vector<int64_t>> get_ints(
      std::string_view key) const;  // integer array of any width; empty if absent
  Result<std::vector<float>> get_floats(std::string_view key) const;  // f32 array; empty if absent

  const std::string& path() const override { return source_->name(); }
  const std::vector<TensorInfo>& tensors() const override { return tensors_; }
  const TensorInfo* find(std::string_view name) const override;
  Result<TensorBytes> bytes(const TensorInfo& tensor) const override;
  void release(const TensorInfo& tensor) const override;

 private:
  friend class Reader;
  // A further file of a split model. Its tensors' offsets count from `base`, beyond those of the files
  // before.
  struct Part {
    std::unique_ptr<ByteSource> source;
    uint64_t data_offset, base;
  };
  struct Place {
    const ByteSource* source;
    uint64_t offset;
  };
  Result<void> add_parts(const std::string& path, uint64_t count);
  Place place(const TensorInfo& tensor) const;

  std::unique_ptr<ByteSource> source_;
  uint32_t version_ = 0;
  uint64_t alignment_ = 32;
  uint64_t data_offset_ = 0;
  std::vector<Part> parts_;
  std::vector<std::pair<std::string, Value>> metadata_;
  std::vector<TensorInfo> tensors_;
  std::map<std::string, size_t, std::less<>> metadata_index_, tensor_index_;
};

}  // namespace doppler::gguf
