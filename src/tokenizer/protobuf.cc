#include "tokenizer/protobuf.h"

namespace doppler {

Result<uint64_t> ProtoReader::varint() {
  uint64_t value = 0;
  for (uint32_t shift = 0; shift < 64; shift += 7) {
    if (rest_.empty()) break;
    const auto byte = static_cast<unsigned char>(rest_[0]);
    rest_.remove_prefix(1);
    value |= uint64_t{byte & 0x7fu} << shift;
    if (byte < 0x80) return value;
  }
  return fail(ErrorCode::kBadFile,
              "[sentencepiece] a number wanted in at most 10 bytes, the file ends or goes on");
}

Result<uint64_t> ProtoReader::fixed(size_t bytes) {
  if (rest_.size() < bytes)
    return fail(ErrorCode::kBadFile, "[sentencepiece] {} bytes wanted, {} are left", bytes, rest_.size());
  uint64_t value = 0;
  for (size_t i = 0; i < bytes; ++i) value |= uint64_t{static_cast<unsigned char>(rest_[i])} << (8 * i);
  rest_.remove_prefix(bytes);
  return value;
}

Result<std::optional<ProtoReader::Field>> ProtoReader::next() {
  if (rest_.empty()) return std::optional<Field>();
  DOPPLER_TRY(const uint64_t key, varint());
  Field field{static_cast<uint32_t>(key >> 3), static_cast<uint32_t>(key & 7), 0, {}};
  if (key >> 3 == 0 || key >> 3 > 0x1fffffff)
    return fail(ErrorCode::kBadFile, "[sentencepiece] a field number from 1 to 2^29 - 1 wanted, got {}",
                key >> 3);
  switch (field.wire_type) {
    case 0: {
      DOPPLER_TRY(field.value, varint());
      break;
    }
    case 1: {
      DOPPLER_TRY(field.value, fixed(8));
      break;
    }
    case 2: {
      DOPPLER_TRY(const uint64_t size, varint());
      if (size > rest_.size())
        return fail(ErrorCode::kBadFile, "[sentencepiece] a part of {} bytes wanted, {} are left", size,
                    rest_.size());
      field.bytes = rest_.substr(0, static_cast<size_t>(size));
      rest_.remove_prefix(static_cast<size_t>(size));
      break;
    }
    case 5: {
      DOPPLER_TRY(field.value, fixed(4));
      break;
    }
    default:
      return fail(ErrorCode::kBadFile,
                  "[sentencepiece] the wire type {} of field {} is not one of SentencePiece's",
                  field.wire_type, field.number);
  }
  return std::optional<Field>(field);
}

}  // namespace doppler
