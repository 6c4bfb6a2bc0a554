#pragma once
// Reads protocol buffers' wire format: one message's fields in order, without a schema.
#include <cstdint>
#include <optional>
#include <string_view>

#include "base/result.h"

namespace doppler {

class ProtoReader {
 public:
  struct Field {
    uint32_t number;
    uint32_t wire_type;      // 0 varint, 1 64 bits, 2 bytes, 5 32 bits
    uint64_t value;          // of types 0, 1 and 5
    std::string_view bytes;  // of type 2
  };

  explicit ProtoReader(std::string_view message) : rest_(message) {}

  /// The next field, nothing at the end. Errors (kBadFile): a field that runs past the end, groups, field
  /// number 0.
  Result<std::optional<Field>> next();

 private:
  Result<uint64_t> varint();
  Result<uint64_t> fixed(size_t bytes);

  std::string_view rest_;
};

}  // namespace doppler
