#include "formats/gguf/reader.h"

#include <algorithm>
#include <bit>
#include <cstring>
#include <utility>

#include "base/text.h"

namespace doppler::gguf {
namespace {

static_assert(std::endian::native == std::endian::little, "numbers are read as they lie in the file");

constexpr uint64_t kMaxKeyBytes = 65535;  // GGUF specification
constexpr uint64_t kMaxNameBytes = 64;    // of a tensor; the same source
constexpr uint32_t kMaxDimensions = 4;
constexpr uint64_t kMaxAlignment = 1 << 30;
// The least that one entry can take: lengths, types and offsets around a name of one byte.
constexpr uint64_t kMinPairBytes = 8 + 1 + 4 + 1;
constexpr uint64_t kMinTensorBytes = 8 + 1 + 4 + 8 + 4 + 8;

/// a * b, or false if it does not fit 63 bits (files of signed sizes are this format's limit).
bool multiply(uint64_t& a, uint64_t b) {
  if (b != 0 && a > (uint64_t{1} << 63) / b) return false;
  a *= b;
  return a < uint64_t{1} << 63;
}

uint64_t round_up(uint64_t value, uint64_t alignment) { return (value + alignment - 1) & ~(alignment - 1); }

}  // namespace

uint64_t scalar_bytes(ValueType type) {
  switch (type) {
    case ValueType::kU8:
    case ValueType::kI8:
    case ValueType::kBool:
      return 1;
    case ValueType::kU16:
    case ValueType::kI16:
      return 2;
    case ValueType::kU32:
    case ValueType::kI32:
    case ValueType::kF32:
      return 4;
    case ValueType::kU64:
    case ValueType::kI64:
    case ValueType::kF64:
      return 8;
    case ValueType::kString:
    case ValueType::kArray:
      return 0;
  }
  return 0;
}

std::string_view type_name(ValueType type) {
  static constexpr std::string_view kNames[] = {"u8",   "i8",     "u16",   "i16", "u32", "i32", "f32",
                                                "bool", "string", "array", "u64", "i64", "f64"};
  const auto index = static_cast<uint32_t>(type);
  return index < std::size(kNames) ? kNames[index] : "unknown";
}

template <class... Args>
tl::unexpected<Error> Reader::bad(fmt::format_string<Args...> format, Args&&... args) const {
  return fail(ErrorCode::kBadFile, "[gguf] {}: {}", file_->source_->name(),
              fmt::format(format, std::forward<Args>(args)...));
}

template <class T>
Result<T> Reader::number(std::string_view what) {
  if (left() < sizeof(T))
    return bad("{} bytes wanted at {} for {}, {} are left; the file is cut short, fetch it again", sizeof(T),
               position_, what, left());
  T value;
  std::memcpy(&value, bytes_.data() + position_, sizeof value);
  position_ += sizeof value;
  return value;
}

Result<std::string_view> Reader::string(std::string_view what) {
  DOPPLER_TRY(const uint64_t length, number<uint64_t>(what));
  if (length > left())
    return bad("{} wants {} bytes at {}, {} are left; the file is cut short or damaged", what, length,
               position_, left());
  const std::string_view text(reinterpret_cast<const char*>(bytes_.data()) + position_, length);
  position_ += length;
  if (!is_utf8(text)) return bad("{} should be UTF-8, is \"{}\"", what, printable(text, 32));
  return text;
}

Result<void> Reader::read_header() {
  if (left() < 4 || std::memcmp(bytes_.data(), "GGUF", 4) != 0)
    return bad("not a GGUF file: it starts with \"{}\", not \"GGUF\"",
               printable({reinterpret_cast<const char*>(bytes_.data()), std::min<size_t>(left(), 4)}));
  position_ = 4;
  DOPPLER_TRY(file_->version_, number<uint32_t>("the version"));
  if ((file_->version_ & 0xffffu) == 0 && file_->version_ != 0)
    return fail(ErrorCode::kUnsupported,
                "[gguf] {}: the file is big-endian; only little-endian files can be read",
                file_->source_->name());
  if (file_->version_ != 2 && file_->version_ != 3)
    return fail(ErrorCode::kUnsupported, "[gguf] {}: version 2 or 3 wanted, got {}; convert the model again",
                file_->source_->name(), file_->version_);
  DOPPLER_TRY(tensor_count_, number<uint64_t>("the tensor count"));
  DOPPLER_TRY(pair_count_, number<uint64_t>("the metadata count"));
  // Before anything is allocated: no count may exceed what the bytes that are there could hold.
  if (pair_count_ > left() / kMinPairBytes)
    return bad("{} metadata entries cannot fit in {} bytes; the file is damaged", pair_count_, left());
  if (tensor_count_ > left() / kMinTensorBytes)
    return bad("{} tensors cannot fit in {} bytes; the file is damaged", tensor_count_, left());
  return {};
}

Result<void> Reader::read_pair() {
  DOPPLER_TRY(const std::string_view key, string("a metadata key"));
  if (key.empty() || key.size() > kMaxKeyBytes)
    return bad("a metadata key has 1 to {} bytes, got {}", kMaxKeyBytes, key.size());
  DOPPLER_TRY(const auto type, number<uint32_t>(printable(key)));
  const size_t index = file_->metadata_.size();
  if (!file_->metadata_index_.emplace(key, index).second)
    return bad("metadata key \"{}\" stands twice; the file is damaged", printable(key));
  DOPPLER_TRY(Value value, read_value(static_cast<ValueType>(type), printable(key)));
  file_->metadata_.emplace_back(key, std::move(value));
  return {};
}

Result<Value> Reader::read_value(ValueType type, std::string_view key) {
  Value value;
  value.type = type;
  const auto store = [&](auto& result) -> Result<Value> {  // widens to the variant's 64-bit types
    if (!result) return forward_error(result);
    using T = std::decay_t<decltype(*result)>;
    if constexpr (std::is_floating_point_v<T>)
      value.data = static_cast<double>(*result);
    else if constexpr (std::is_signed_v<T>)
      value.data = static_cast<int64_t>(*result);
    else
      value.data = static_cast<uint64_t>(*result);
    return value;
  };
  const auto scalar = [&]<class T>(T) {
    auto result = number<T>(key);
    return store(result);
  };
  switch (type) {
    case ValueType::kU8:
      return scalar(uint8_t{});
    case ValueType::kI8:
      return scalar(int8_t{});
    case ValueType::kU16:
      return scalar(uint16_t{});
    case ValueType::kI16:
      return scalar(int16_t{});
    case ValueType::kU32:
      return scalar(uint32_t{});
    case ValueType::kI32:
      return scalar(int32_t{});
    case ValueType::kU64:
      return scalar(uint64_t{});
    case ValueType::kI64:
      return scalar(int64_t{});
    case ValueType::kF32:
      return scalar(float{});
    case ValueType::kF64:
      return scalar(double{});
    case ValueType::kBool: {
      DOPPLER_TRY(const auto byte, number<uint8_t>(key));
      if (byte > 1) return bad("{} is a bool, 0 or 1, and holds {}", key, byte);
      value.data = byte == 1;
      return value;
    }
    case ValueType::kString: {
      DOPPLER_TRY(value.data, string(key));
      return value;
    }
    case ValueType::kArray: {
      DOPPLER_TRY(value.data, read_array(key));
      return value;
    }
  }
  return bad("{} has value type {}; types are 0 to 12", key, static_cast<uint32_t>(type));
}

Result<Array> Reader::read_array(std::string_view key) {
  Array array;
  DOPPLER_TRY(const auto type, number<uint32_t>(key));
  DOPPLER_TRY(array.count, number<uint64_t>(key));
  array.type = static_cast<ValueType>(type);
  if (array.type == ValueType::kArray)
    return fail(ErrorCode::kUnsupported, "[gguf] {}: {} is an array of arrays, which no model uses",
                file_->source_->name(), key);
  const bool strings = array.type == ValueType::kString;
  const uint64_t least = strings ? 8 : scalar_bytes(array.type);  // bytes an element takes at least
  if (least == 0) return bad("{} is an array of value type {}; types are 0 to 12", key, type);
  if (array.count > left() / least)
    return bad("{} has {} elements, which cannot fit in {} bytes; the file is damaged", key, array.count,
               left());
  if (strings) {
    array.strings.reserve(array.count);
    for (uint64_t i = 0; i < array.count; ++i) {
      DOPPLER_TRY(const std::string_view text, string(key));
      array.strings.push_back(text);
    }
    return array;
  }
  array.raw = bytes_.subspan(position_, array.count * least);
  position_ += array.raw.size();
  if (array.type == ValueType::kBool)
    for (const std::byte b : array.raw)
      if (b > std::byte{1}) return bad("{} holds bools, 0 or 1, and one is {}", key, std::to_integer<int>(b));
  return array;
}

Result<void> Reader::use_metadata() {
  DOPPLER_TRY(const auto alignment, file_->get_uint("general.alignment"));
  file_->alignment_ = alignment.value_or(32);
  if (file_->alignment_ < 8 || file_->alignment_ > kMaxAlignment || !std::has_single_bit(file_->alignment_))
    return bad("general.alignment should be a power of two from 8 to {}, is {}", kMaxAlignment,
               file_->alignment_);
  return {};
}

Result<void> Reader::read_tensor() {
  TensorInfo tensor;
  DOPPLER_TRY(const std::string_view name, string("a tensor name"));
  if (name.empty() || name.size() > kMaxNameBytes)
    return bad("a tensor name has 1 to {} bytes, got {}: \"{}\"", kMaxNameBytes, name.size(),
               printable(name, 32));
  tensor.name = name;
  const std::string shown = fmt::format("tensor \"{}\"", printable(name));
  if (!file_->tensor_index_.emplace(name, file_->tensors_.size()).second)
    return bad("{} stands twice; the file is damaged", shown);

  DOPPLER_TRY(const auto dimensions, number<uint32_t>(shown));
  if (dimensions < 1 || dimensions > kMaxDimensions)
    return bad("{} should have 1 to {} dimensions, has {}", shown, kMaxDimensions, dimensions);
  uint64_t elements = 1;
  for (uint32_t i = 0; i < dimensions; ++i) {
    DOPPLER_TRY(const auto size, number<uint64_t>(shown));
    if (size == 0) return bad("{} has a dimension of size 0", shown);
    if (!multiply(elements, size)) return bad("{} has more elements than 64 bits count", shown);
    tensor.shape.push_back(size);
  }
  std::reverse(tensor.shape.begin(), tensor.shape.end());  // the file lists the fastest dimension first

  DOPPLER_TRY(const auto type, number<uint32_t>(shown));
  const std::optional<DType> dtype = dtype_from_ggml(type);
  if (!dtype)
    return fail(ErrorCode::kUnsupported, "[gguf] {}: {} has ggml type {}, which this build does not know",
                file_->source_->name(), shown, type);
  tensor.dtype = *dtype;
  const DTypeInfo& info = dtype_info(*dtype);
  if (tensor.columns() % info.block_elems != 0)
    return bad("{} has rows of {} values; {} packs them by {}", shown, tensor.columns(), info.name,
               info.block_elems);
  tensor.size_bytes = elements / info.block_elems;
  if (!multiply(tensor.size_bytes, info.block_bytes))
    return bad("{} has more bytes than 64 bits count", shown);

  DOPPLER_TRY(tensor.offset, number<uint64_t>(shown));
  if (tensor.offset % file_->alignment_ != 0)
    return bad("{} starts at offset {}, not a multiple of the alignment {}", shown, tensor.offset,
               file_->alignment_);
  file_->tensors_.push_back(std::move(tensor));
  return {};
}

Result<void> Reader::check_data() const {
  const uint64_t available = bytes_.size() - std::min<uint64_t>(file_->data_offset_, bytes_.size());
  std::vector<const TensorInfo*> order;
  order.reserve(file_->tensors_.size());
  for (const TensorInfo& t : file_->tensors_) {
    if (t.offset > available || t.size_bytes > available - t.offset)
      return bad(
          "tensor \"{}\" takes {} bytes at offset {}, the file holds {} bytes of data; it is cut short or "
          "damaged",
          printable(t.name), t.size_bytes, t.offset, available);
    order.push_back(&t);
  }
  std::sort(order.begin(), order.end(),
            [](const TensorInfo* a, const TensorInfo* b) { return a->offset < b->offset; });
  for (size_t i = 1; i < order.size(); ++i)
    if (order[i - 1]->offset + order[i - 1]->size_bytes > order[i]->offset)
      return bad("tensors \"{}\" and \"{}\" overlap at offset {}; the file is damaged",
                 printable(order[i - 1]->name), printable(order[i]->name), order[i]->offset);
  return {};
}

Result<std::unique_ptr<GgufFile>> Reader::read() {
  DOPPLER_TRY(bytes_, file_->source_->view(0, file_->source_->size()));
  DOPPLER_CHECK_OK(read_header());
  file_->metadata_.reserve(pair_count_);
  for (uint64_t i = 0; i < pair_count_; ++i) DOPPLER_CHECK_OK(read_pair());
  DOPPLER_CHECK_OK(use_metadata());
  if (tensor_count_ > left() / kMinTensorBytes)
    return bad("{} tensors cannot fit in {} bytes; the file is damaged", tensor_count_, left());
  file_->tensors_.reserve(tensor_count_);
  for (uint64_t i = 0; i < tensor_count_; ++i) DOPPLER_CHECK_OK(read_tensor());
  file_->data_offset_ = round_up(position_, file_->alignment_);
  DOPPLER_CHECK_OK(check_data());
  return std::move(file_);
}

}  // namespace doppler::gguf
