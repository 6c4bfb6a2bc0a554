#pragma once
// Where bytes come from: a memory-mapped file today; HTTP and the browser's store later.
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "base/result.h"

namespace doppler {

class ByteSource {
 public:
  virtual ~ByteSource() = default;
  virtual uint64_t size() const = 0;
  virtual const std::string& name() const = 0;  // for messages: the path

  /// A view of [offset, offset + length) that stays valid as long as this source; bounds-checked.
  virtual Result<std::span<const std::byte>> view(uint64_t offset, uint64_t length) const = 0;

  /// The caller is done with this range for now: its pages may leave memory (they come back when touched).
  virtual void release(uint64_t offset, uint64_t length) const = 0;
};

/// Maps a file read-only. Errors: not found, a directory, empty, not readable.
Result<std::unique_ptr<ByteSource>> open_file(const std::string& path);

/// Maps several files one after the other into a single address range (RDRR shards), so that what crosses a
/// file boundary is still one contiguous view. Every file but the last must be a multiple of the page size
/// long; the caller checks with `page_size()` and copies across boundaries otherwise.
Result<std::unique_ptr<ByteSource>> open_files(const std::vector<std::string>& paths);
uint64_t page_size();

/// Bytes held in memory (small files, tests).
std::unique_ptr<ByteSource> memory_source(std::string name, std::vector<std::byte> bytes);

/// Reads a whole small file of a model (manifest, tokenizer); refuses more than `limit_bytes`, and devices
/// and pipes, which could keep it waiting for ever.
Result<std::string> read_text_file(const std::string& path, uint64_t limit_bytes);

/// Writes a file so that it is whole or absent: a temporary beside it, flushed, then renamed.
Result<void> write_file_atomically(const std::string& path, std::span<const std::byte> bytes);

}  // namespace doppler
