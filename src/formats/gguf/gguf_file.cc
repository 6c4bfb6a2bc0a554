// Look-ups in an opened GGUF file.
#include <cmath>
#include <cstring>
#include <limits>

#include "base/text.h"
#include "formats/gguf/reader.h"

namespace doppler::gguf {
namespace {

constexpr uint64_t kMaxParts = 1000;
constexpr uint64_t kMaxInt64 = static_cast<uint64_t>(std::numeric_limits<int64_t>::max());

tl::unexpected<Error> wrong_type(const GgufFile& file, std::string_view key, std::string_view wanted,
                                 const Value& v) {
  std::string got(type_name(v.type));
  if (const auto* array = std::get_if<Array>(&v.data)) got = fmt::format("{} array", type_name(array->type));
  return fail(ErrorCode::kBadFile, "[gguf] {}: {} should be {}, is {}", file.path(), printable(key), wanted,
              got);
}

bool is_signed(ValueType type) {
  return type == ValueType::kI8 || type == ValueType::kI16 || type == ValueType::kI32 ||
         type == ValueType::kI64;
}

bool is_integer(ValueType type) {
  return is_signed(type) || type == ValueType::kU8 || type == ValueType::kU16 || type == ValueType::kU32 ||
         type == ValueType::kU64;
}

/// A little-endian integer of `size` bytes, sign-extended if its type is signed.
uint64_t widen(const std::byte* bytes, uint64_t size, bool sign) {
  uint64_t value = 0;
  std::memcpy(&value, bytes, size);
  const uint64_t top = uint64_t{1} << (8 * size - 1);
  if (sign && (value & top) != 0) value |= ~(top | (top - 1));
  return value;
}

}  // namespace

Result<std::unique_ptr<GgufFile>> GgufFile::open(const std::string& path) {
  DOPPLER_TRY(auto source, open_file(path));
  DOPPLER_TRY(std::unique_ptr<GgufFile> file, Reader(std::move(source)).read());
  DOPPLER_TRY(const std::optional<uint64_t> count, file->get_uint("split.count"));
  if (count.value_or(1) > 1) DOPPLER_CHECK_OK(file->add_parts(path, *count));
  return file;
}

Result<void> GgufFile::add_parts(const std::string& path, uint64_t count) {
  DOPPLER_TRY(const std::optional<uint64_t> number, get_uint("split.no"));
  const std::string ending = fmt::format("-00001-of-{:05}.gguf", count);
  if (count > kMaxParts || number.value_or(0) != 0 || !path.ends_with(ending))
    return fail(ErrorCode::kUnsupported,
                "[gguf] {}: split.count is {}, the first of these files, named *{}, wanted, got no. {}", path,
                count, ending, number.value_or(0) + 1);
  const std::string stem = path.substr(0, path.size() - ending.size());
  uint64_t base = source_->size();
  for (uint64_t i = 2; i <= count; ++i) {
    DOPPLER_TRY(auto source, open_file(fmt::format("{}-{:05}-of-{:05}.gguf", stem, i, count)));
    DOPPLER_TRY(std::unique_ptr<GgufFile> part, Reader(std::move(source)).read());
    for (TensorInfo& tensor : part->tensors_) {
      if (!tensor_index_.emplace(tensor.name, tensors_.size()).second)
        return fail(ErrorCode::kBadFile, "[gguf] {}: each tensor once wanted, {} is in an earlier file too",
                    part->path(), printable(tensor.name));
      tensor.offset += base;
      tensors_.push_back(std::move(tensor));
    }
    const uint64_t size = part->source_->size();
    parts_.push_back({std::move(part->source_), part->data_offset_, base});
    base += size;
  }
  DOPPLER_TRY(const std::optional<uint64_t> tensors, get_uint("split.tensors.count"));
  if (tensors && *tensors != tensors_.size())
    return fail(ErrorCode::kBadFile, "[gguf] {}: {} tensors in {} files wanted, got {}", path, *tensors,
                count, tensors_.size());
  return {};
}

GgufFile::Place GgufFile::place(const TensorInfo& tensor) const {
  Place place{source_.get(), data_offset_ + tensor.offset};
  for (const Part& part : parts_)
    if (tensor.offset >= part.base) place = {part.source.get(), part.data_offset + tensor.offset - part.base};
  return place;
}

Result<std::unique_ptr<GgufFile>> GgufFile::open(std::unique_ptr<ByteSource> source) {
  DOPPLER_TRY(std::unique_ptr<GgufFile> file, Reader(std::move(source)).read());
  DOPPLER_TRY(const std::optional<uint64_t> count, file->get_uint("split.count"));
  if (count.value_or(1) > 1)
    return fail(ErrorCode::kUnsupported,
                "[gguf] {}: split.count is {}, this is one part of a split model; open it by path",
                file->path(), *count);
  return file;
}

const Value* GgufFile::value(std::string_view key) const {
  const auto found = metadata_index_.find(key);
  return found == metadata_index_.end() ? nullptr : &metadata_[found->second].second;
}

Result<std::optional<uint64_t>> GgufFile::get_uint(std::string_view key) const {
  const Value* v = value(key);
  if (v == nullptr) return std::optional<uint64_t>();
  if (const auto* number = std::get_if<uint64_t>(&v->data)) return std::optional(*number);
  if (const auto* number = std::get_if<int64_t>(&v->data)) {
    if (*number >= 0) return std::optional(static_cast<uint64_t>(*number));
    return fail(ErrorCode::kBadFile, "[gguf] {}: {} should not be negative, is {}", path(), printable(key),
                *number);
  }
  return wrong_type(*this, key, "an integer", *v);
}

Result<std::optional<double>> GgufFile::get_float(std::string_view key) const {
  const Value* v = value(key);
  if (v == nullptr) return std::optional<double>();
  const auto* number = std::get_if<double>(&v->data);
  if (number == nullptr) return wrong_type(*this, key, "a float", *v);
  if (!std::isfinite(*number))
    return fail(ErrorCode::kBadFile, "[gguf] {}: {} should be a finite number, is {}", path(), printable(key),
                *number);
  return std::optional(*number);
}

Result<std::optional<bool>> GgufFile::get_bool(std::string_view key) const {
  const Value* v = value(key);
  if (v == nullptr) return std::optional<bool>();
  if (const auto* flag = std::get_if<bool>(&v->data)) return std::optional(*flag);
  return wrong_type(*this, key, "a bool", *v);
}

Result<std::optional<std::string_view>> GgufFile::get_string(std::string_view key) const {
  const Value* v = value(key);
  if (v == nullptr) return std::optional<std::string_view>();
  if (const auto* text = std::get_if<std::string_view>(&v->data)) return std::optional(*text);
  return wrong_type(*this, key, "a string", *v);
}

Result<const Array*> GgufFile::get_array(std::string_view key, ValueType type) const {
  const Value* v = value(key);
  if (v == nullptr) return nullptr;
  const auto* array = std::get_if<Array>(&v->data);
  if (array == nullptr || array->type != type)
    return wrong_type(*this, key, fmt::format("a {} array", type_name(type)), *v);
  return array;
}

Result<std::vector<int64_t>> GgufFile::get_ints(std::string_view key) const {
  std::vector<int64_t> ints;
  const Value* v = value(key);
  if (v == nullptr) return ints;
  const auto* array = std::get_if<Array>(&v->data);
  if (array == nullptr || !is_integer(array->type)) return wrong_type(*this, key, "an integer array", *v);
  const uint64_t size = scalar_bytes(array->type);
  const bool sign = is_signed(array->type);
  ints.reserve(array->count);
  for (uint64_t i = 0; i < array->count; ++i) {
    const uint64_t bits = widen(array->raw.data() + i * size, size, sign);
    if (!sign && bits > kMaxInt64)
      return fail(ErrorCode::kBadFile, "[gguf] {}: {}[{}] should be at most {}, is {}", path(),
                  printable(key), i, kMaxInt64, bits);
    ints.push_back(static_cast<int64_t>(bits));
  }
  return ints;
}

Result<std::vector<float>> GgufFile::get_floats(std::string_view key) const {
  DOPPLER_TRY(const Array* array, get_array(key, ValueType::kF32));
  std::vector<float> floats(array == nullptr ? 0 : array->count);
  if (!floats.empty()) std::memcpy(floats.data(), array->raw.data(), array->raw.size());
  return floats;
}

const TensorInfo* GgufFile::find(std::string_view name) const {
  const auto found = tensor_index_.find(name);
  return found == tensor_index_.end() ? nullptr : &tensors_[found->second];
}

Result<TensorBytes> GgufFile::bytes(const TensorInfo& tensor) const {
  const Place at = place(tensor);
  DOPPLER_TRY(auto data, at.source->view(at.offset, tensor.size_bytes));
  return TensorBytes{data, nullptr};
}

void GgufFile::release(const TensorInfo& tensor) const {
  const Place at = place(tensor);
  at.source->release(at.offset, tensor.size_bytes);
}

}  // namespace doppler::gguf
