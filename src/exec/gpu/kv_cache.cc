#include "exec/gpu/kv_cache.h"

#include <algorithm>
#include <atomic>

namespace doppler::gpu_exec {
namespace {

constexpr uint32_t kFirstPositions = 256;

uint64_t next_id() {
  static std::atomic<uint64_t> last = 0;
  return ++last;
}

}  // namespace

GpuKvCache::GpuKvCache(const void* owner, std::shared_ptr<gpu::Device> device,
                       std::vector<graph::KvLayer> layers, uint32_t capacity, KvType type)
    : owner_(owner),
      device_(std::move(device)),
      capacity_(capacity),
      element_(type == KvType::kF16 ? kernels::KvElement::kF16 : kernels::KvElement::kF32),
      buffers_id_(next_id()) {
  for (const graph::KvLayer& shape : layers) layers_.emplace_back().shape = shape;
}

uint64_t GpuKvCache::size_bytes() const {
  uint64_t bytes = 0;
  for (const Layer& layer : layers_) bytes += layer.k.bytes() + layer.v.bytes();
  return bytes;
}

kernels::KvBuffers GpuKvCache::layer(uint32_t index) const {
  const Layer& layer = layers_[index];
  return {&layer.k, &layer.v, layer.width(), layer.positions, element_};
}

bool GpuKvCache::holds(uint32_t positions) const {
  return std::all_of(layers_.begin(), layers_.end(),
                     [&](const Layer& layer) { return positions <= layer.positions; });
}

Result<void> GpuKvCache::reserve(uint32_t positions) {
  for (Layer& layer : layers_) {
    if (positions <= layer.positions) continue;
    uint64_t room = std::max(layer.positions, kFirstPositions);
    while (room < positions) room *= 2;
    DOPPLER_CHECK_OK(grow(layer, static_cast<uint32_t>(std::min<uint64_t>(room, capacity_))));
  }
  return {};
}

Result<void> GpuKvCache::grow(Layer& layer, uint32_t positions) {
  const uint64_t bytes = kernels::kv_bytes(positions, layer.width(), element_);
  if (bytes > device_->caps().max_binding_bytes)
    return fail(
        ErrorCode::kOutOfMemory,
        "[gpu] keys of {} positions take {} bytes a layer, {} binds at most {}; use a shorter context",
        positions, bytes, device_->caps().adapter, device_->caps().max_binding_bytes);
  DOPPLER_TRY(gpu::Buffer k, device_->create_buffer(bytes, "kv/k"));
  DOPPLER_TRY(gpu::Buffer v, device_->create_buffer(bytes, "kv/v"));
  if (length_ > 0 && layer.k) {
    const uint64_t filled = kernels::kv_bytes(length_, layer.width(), element_);
    gpu::Commands copy = device_->begin("kv/grow");
    copy.copy(layer.k, 0, k, 0, filled);
    copy.copy(layer.v, 0, v, 0, filled);
    DOPPLER_CHECK_OK(device_->submit(std::move(copy)));
  }
  layer.k = std::move(k);
  layer.v = std::move(v);
  layer.positions = positions;
  buffers_id_ = next_id();
  return {};
}

}  // namespace doppler::gpu_exec
