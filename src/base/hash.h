#pragma once
// Digests used by RDRR manifests and downloads.
#include <array>
#include <cstddef>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "base/result.h"

namespace doppler {

enum class HashKind { kSha256, kBlake3 };
std::optional<HashKind> hash_kind_from_name(std::string_view name);  // "sha256", "blake3"
std::string_view hash_name(HashKind kind);

/// Incremental 256-bit digest: update() any number of times, then finish() once.
class Hasher {
 public:
  virtual ~Hasher() = default;
  virtual void update(std::span<const std::byte> bytes) = 0;
  virtual std::array<std::byte, 32> finish() = 0;
};

std::unique_ptr<Hasher> make_hasher(HashKind kind);
std::string hex(std::span<const std::byte> bytes);
std::string hash_hex(HashKind kind, std::span<const std::byte> bytes);
Result<std::string> hash_file_hex(HashKind kind, const std::string& path);  // streams; constant memory

}  // namespace doppler
