#include "support/gguf_writer.h"

#include <algorithm>
#include <cassert>

#include "base/quants.h"
#include "support/files.h"

namespace doppler::test {
namespace {

template <class T>
void append(std::vector<std::byte>& out, T value) {
  const auto* bytes = reinterpret_cast<const std::byte*>(&value);
  out.insert(out.end(), bytes, bytes + sizeof value);
}

void append_string(std::vector<std::byte>& out, const std::string& text) {
  append<uint64_t>(out, text.size());
  for (const char c : text) out.push_back(static_cast<std::byte>(c));
}

void pad(std::vector<std::byte>& out, uint64_t alignment) {
  while (out.size() % alignment != 0) out.push_back(std::byte{0});
}

}  // namespace

void GgufWriter::put(const std::string& key, uint32_t type, std::vector<std::byte> value) {
  for (Pair& pair : pairs)
    if (pair.key == key) {
      pair.type = type;
      pair.value = std::move(value);
      return;
    }
  pairs.push_back({key, type, std::move(value)});
}

void GgufWriter::set_string(const std::string& key, const std::string& text) {
  std::vector<std::byte> value;
  append_string(value, text);
  put(key, static_cast<uint32_t>(gguf::ValueType::kString), std::move(value));
}

void GgufWriter::put_array(const std::string& key, uint32_t type, uint64_t count,
                           std::vector<std::byte> elements) {
  std::vector<std::byte> value;
  append(value, type);
  append(value, count);
  value.insert(value.end(), elements.begin(), elements.end());
  put(key, static_cast<uint32_t>(gguf::ValueType::kArray), std::move(value));
}

void GgufWriter::set_strings(const std::string& key, const std::vector<std::string>& texts) {
  std::vector<std::byte> elements;
  for (const std::string& text : texts) append_string(elements, text);
  put_array(key, static_cast<uint32_t>(gguf::ValueType::kString), texts.size(), std::move(elements));
}

void GgufWriter::erase(const std::string& key) {
  std::erase_if(pairs, [&](const Pair& pair) { return pair.key == key; });
}

void GgufWriter::add(const std::string& name, DType dtype, std::vector<uint64_t> shape,
                     const std::vector<float>& values) {
  const DTypeInfo& info = dtype_info(dtype);
  assert(info.ggml_type >= 0 && values.size() % info.block_elems == 0);
  std::vector<std::byte> data(row_bytes(dtype, values.size()));
  quantize(dtype, values.data(), values.size(), data.data());
  tensors.push_back(
      {name, std::move(shape), static_cast<uint32_t>(info.ggml_type), std::move(data), std::nullopt});
}

GgufWriter::Tensor& GgufWriter::tensor(const std::string& name) {
  const auto found =
      std::find_if(tensors.begin(), tensors.end(), [&](const Tensor& t) { return t.name == name; });
  assert(found != tensors.end());
  return *found;
}

std::vector<std::byte> GgufWriter::bytes(std::vector<size_t>* boundaries) const {
  std::vector<std::byte> out;
  const auto mark = [&] {
    if (boundaries != nullptr) boundaries->push_back(out.size());
  };
  for (const char c : {'G', 'G', 'U', 'F'}) out.push_back(static_cast<std::byte>(c));
  mark();
  append(out, version);
  mark();
  append<uint64_t>(out, tensors.size());
  mark();
  append<uint64_t>(out, pairs.size());
  mark();
  for (const Pair& pair : pairs) {
    append_string(out, pair.key);
    mark();
    append(out, pair.type);
    mark();
    out.insert(out.end(), pair.value.begin(), pair.value.end());
    mark();
  }
  uint64_t offset = 0;
  for (const Tensor& t : tensors) {
    append_string(out, t.name);
    mark();
    append(out, static_cast<uint32_t>(t.shape.size()));
    for (size_t i = t.shape.size(); i-- > 0;) append(out, t.shape[i]);
    mark();
    append(out, t.type);
    mark();
    append(out, t.offset.value_or(offset));
    mark();
    offset += (t.data.size() + alignment - 1) / alignment * alignment;
  }
  pad(out, alignment);
  mark();
  for (const Tensor& t : tensors) {
    out.insert(out.end(), t.data.begin(), t.data.end());
    mark();
    pad(out, alignment);
  }
  mark();
  return out;
}

void GgufWriter::write(const std::string& path) const { write_bytes(path, bytes()); }

}  // namespace doppler::test
