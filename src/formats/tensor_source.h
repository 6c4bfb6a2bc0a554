#pragma once
// What every weight format gives: a table of named tensors and their bytes.
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/dtype.h"
#include "base/result.h"

namespace doppler {

/// One stored tensor. `shape` is row-major, output dimension first: a linear weight is [out, in].
struct TensorInfo {
  std::string name;
  DType dtype = DType::kF32;
  std::vector<uint64_t> shape;
  uint64_t size_bytes = 0;
  uint64_t offset = 0;  // in the format's (virtual) concatenation of data

  uint64_t columns() const { return shape.empty() ? 1 : shape.back(); }
  uint64_t rows() const {
    uint64_t n = 1;
    for (size_t i = 0; i + 1 < shape.size(); ++i) n *= shape[i];
    return n;
  }
  uint64_t element_count() const { return rows() * columns(); }
};

/// A tensor's bytes: `data` points into a mapping, or into `owned` where the file stores it in pieces.
struct TensorBytes {
  std::span<const std::byte> data;
  std::shared_ptr<const std::vector<std::byte>> owned;
};

class TensorSource {
 public:
  virtual ~TensorSource() = default;
  virtual const std::string& path() const = 0;
  virtual const std::vector<TensorInfo>& tensors() const = 0;
  virtual const TensorInfo* find(std::string_view name) const = 0;  // nullptr if absent
  virtual Result<TensorBytes> bytes(const TensorInfo& tensor) const = 0;
  virtual void release(const TensorInfo& tensor) const = 0;  // pages may leave memory
};

}  // namespace doppler
