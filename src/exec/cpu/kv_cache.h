#pragma once
// Keys and values of one sequence in host memory, in blocks of positions that are taken as they are needed.
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "exec/executor.h"

namespace doppler::cpu {

class CpuKvCache final : public KvCache {
 public:
  static constexpr uint32_t kBlockPositions = 256;

  CpuKvCache(const void* owner, std::vector<graph::KvLayer> layers, uint32_t capacity, KvType type);

  uint32_t length() const override { return length_; }
  uint32_t capacity() const override { return capacity_; }
  uint64_t size_bytes() const override;
  void truncate(uint32_t length) override;

  const void* owner() const { return owner_; }  // the executor that made it
  KvType type() const { return type_; }
  uint32_t width(uint32_t layer) const { return layers_[layer].kv_heads * layers_[layer].head_dim; }

  /// Makes room for positions below `positions` (at most the capacity) in every layer. Errors: out of memory.
  Result<void> reserve(uint32_t positions);

  /// Stores one position's k and v, `width(layer)` values each, narrowing to f16 where that is the type.
  void write(uint32_t layer, uint32_t position, const float* k, const float* v);
  void set_length(uint32_t length) { length_ = length; }

  /// Rows [position, position + n) of one block, n up to the block's end: f32 or f16, `width(layer)` apart.
  const std::byte* keys(uint32_t layer, uint32_t position) const { return row(layer, position, 0); }
  const std::byte* values(uint32_t layer, uint32_t position) const { return row(layer, position, 1); }

 private:
  const std::byte* row(uint32_t layer, uint32_t position, uint32_t half) const;
  uint64_t row_bytes(uint32_t layer) const { return width(layer) * (type_ == KvType::kF16 ? 2ull : 4ull); }

  const void* owner_;
  std::vector<graph::KvLayer> layers_;
  uint32_t capacity_, length_ = 0;
  KvType type_;
  std::vector<std::vector<std::unique_ptr<std::byte[]>>> blocks_;  // per layer: K rows, then V rows
};

}  // namespace doppler::cpu
