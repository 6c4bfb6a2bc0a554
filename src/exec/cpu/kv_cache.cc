#include "exec/cpu/kv_cache.h"

#include <algorithm>
#include <cstring>
#include <new>
#include <utility>

#include "base/half.h"

namespace doppler::cpu {

CpuKvCache::CpuKvCache(const void* owner, std::vector<graph::KvLayer> layers, uint32_t capacity, KvType type)
    : owner_(owner), layers_(std::move(layers)), capacity_(capacity), type_(type), blocks_(layers_.size()) {}

uint64_t CpuKvCache::size_bytes() const {
  uint64_t total = 0;
  for (uint32_t layer = 0; layer < layers_.size(); ++layer)
    total += blocks_[layer].size() * 2 * kBlockPositions * row_bytes(layer);
  return total;
}

void CpuKvCache::truncate(uint32_t length) { length_ = std::min(length_, length); }

Result<void> CpuKvCache::reserve(uint32_t positions) {
  const size_t wanted = (positions + kBlockPositions - 1) / kBlockPositions;
  for (uint32_t layer = 0; layer < layers_.size(); ++layer) {
    while (blocks_[layer].size() < wanted) {
      const uint64_t bytes = 2 * kBlockPositions * row_bytes(layer);
      std::unique_ptr<std::byte[]> block(new (std::nothrow) std::byte[bytes]);
      if (!block)
        return fail(ErrorCode::kOutOfMemory,
                    "[cpu] {} bytes of cache for position {} wanted, memory is full; lower --context", bytes,
                    positions);
      blocks_[layer].push_back(std::move(block));
    }
  }
  return {};
}

const std::byte* CpuKvCache::row(uint32_t layer, uint32_t position, uint32_t half) const {
  const std::byte* block = blocks_[layer][position / kBlockPositions].get();
  return block + (half * kBlockPositions + position % kBlockPositions) * row_bytes(layer);
}

void CpuKvCache::write(uint32_t layer, uint32_t position, const float* k, const float* v) {
  const float* parts[2] = {k, v};
  for (uint32_t half = 0; half < 2; ++half) {
    std::byte* to = const_cast<std::byte*>(row(layer, position, half));
    const float* from = parts[half];
    if (type_ == KvType::kF32) {
      std::memcpy(to, from, width(layer) * sizeof(float));
      continue;
    }
    for (uint32_t i = 0; i < width(layer); ++i) {
      const uint16_t narrow = f32_to_f16(from[i]);
      std::memcpy(to + 2ull * i, &narrow, sizeof narrow);
    }
  }
}

}  // namespace doppler::cpu
