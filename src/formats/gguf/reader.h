#pragma once
// Parses a GGUF file from its first byte to the end of the tensor table, then checks where the data lies.
#include <memory>
#include <span>
#include <string>
#include <string_view>

#include "formats/gguf/gguf.h"

namespace doppler::gguf {

class Reader {
 public:
  explicit Reader(std::unique_ptr<ByteSource> source) : file_(new GgufFile) {
    file_->source_ = std::move(source);
  }

  Result<std::unique_ptr<GgufFile>> read();

 private:
  uint64_t left() const { return bytes_.size() - position_; }
  template <class... Args>
  tl::unexpected<Error> bad(fmt::format_string<Args...> format, Args&&... args) const;
  template <class T>
  Result<T> number(std::string_view what);
  Result<std::string_view> string(std::string_view what);
  Result<void> read_header();
  Result<void> read_pair();
  Result<Value> read_value(ValueType type, std::string_view key);
  Result<Array> read_array(std::string_view key);
  Result<void> use_metadata();
  Result<void> read_tensor();
  Result<void> check_data() const;

  std::unique_ptr<GgufFile> file_;
  std::span<const std::byte> bytes_;  // the whole file
  uint64_t position_ = 0;
  uint64_t tensor_count_ = 0, pair_count_ = 0;
};

/// Bytes of one scalar; 0 for strings, arrays and unknown types.
uint64_t scalar_bytes(ValueType type);
std::string_view type_name(ValueType type);

}  // namespace doppler::gguf
