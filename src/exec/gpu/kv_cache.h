#pragma once
// Keys and values of one sequence on the device, grown by doubling.
#include <memory>
#include <vector>

#include "exec/executor.h"
#include "gpu/device.h"
#include "kernels/kv_write/kv_write.h"

namespace doppler::gpu_exec {

class GpuKvCache final : public KvCache {
 public:
  GpuKvCache(const void* owner, std::shared_ptr<gpu::Device> device, std::vector<graph::KvLayer> layers,
             uint32_t capacity, KvType type);

  uint32_t length() const override { return length_; }
  uint32_t capacity() const override { return capacity_; }
  uint64_t size_bytes() const override;
  void truncate(uint32_t length) override { length_ = length < length_ ? length : length_; }

  const void* owner() const { return owner_; }  // the executor that made it
  void set_length(uint32_t length) { length_ = length; }

  /// Makes room for positions below `positions` (at most the capacity) in every layer, keeping what is there.
  /// Errors: kOutOfMemory, and the layers stay usable as they were.
  Result<void> reserve(uint32_t positions);

  kernels::KvBuffers layer(uint32_t index) const;
  /// True if positions below `positions` fit without new buffers.
  bool holds(uint32_t positions) const;
  /// Changes with the buffers, and no two caches share one: what was recorded for them is tied to it.
  uint64_t buffers_id() const { return buffers_id_; }

 private:
  struct Layer {
    graph::KvLayer shape;
    gpu::Buffer k, v;
    uint32_t positions = 0;  // that fit
    uint32_t width() const { return shape.kv_heads * shape.head_dim; }
  };
  Result<void> grow(Layer& layer, uint32_t positions);

  const void* owner_;
  std::shared_ptr<gpu::Device> device_;
  std::vector<Layer> layers_;
  uint32_t capacity_, length_ = 0;
  kernels::KvElement element_;
  uint64_t buffers_id_;
};

}  // namespace doppler::gpu_exec
