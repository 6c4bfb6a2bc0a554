#include <algorithm>

#include "exec/gpu/recorder.h"

namespace doppler::gpu_exec {

Result<Workspace> Workspace::make(gpu::Device& device, const graph::Graph& graph, const StaticPlan& fixed,
                                  const GpuOptions& options) {
  Workspace work;
  for (const uint64_t bytes : fixed.slots.slot_bytes) {
    DOPPLER_TRY(gpu::Buffer slot, device.create_buffer(bytes, "activations"));
    work.slots.push_back(std::move(slot));
  }
  DOPPLER_TRY(work.ids, device.create_buffer(uint64_t{options.max_chunk} * 4, "ids"));
  for (size_t i = 0; i < work.quantized.size(); ++i)
    if (fixed.quantized_bytes[i] > 0) {
      DOPPLER_TRY(work.quantized[i], device.create_buffer(fixed.quantized_bytes[i], "quantized"));
    }
  if (fixed.scratch_bytes > 0) {
    DOPPLER_TRY(work.scratch, device.create_buffer(fixed.scratch_bytes, "scratch"));
  }
  if (!fixed.expert_layers.empty()) {
    uint64_t experts = 0;
    for (const ExpertLayer& layer : fixed.expert_layers) experts = std::max<uint64_t>(experts, layer.experts);
    DOPPLER_TRY(work.expert_groups, device.create_buffer(fixed.expert_groups_bytes, "expert groups"));
    DOPPLER_TRY(work.places, device.create_buffer(experts * 4, "expert places"));
  }
  for (const graph::RopeTable& table : graph.rope_tables) {
    DOPPLER_TRY(gpu::Buffer buffer,
                device.create_buffer(uint64_t{options.max_chunk} * table.inv_freq.size() * 8, "rope"));
    work.rope_tables.push_back(std::move(buffer));
  }
  return work;
}

uint64_t Workspace::size_bytes() const {
  uint64_t bytes = ids.bytes() + scratch.bytes() + expert_groups.bytes() + places.bytes();
  for (const gpu::Buffer& buffer : quantized) bytes += buffer.bytes();
  for (const gpu::Buffer& slot : slots) bytes += slot.bytes();
  for (const gpu::Buffer& table : rope_tables) bytes += table.bytes();
  return bytes;
}

}  // namespace doppler::gpu_exec
