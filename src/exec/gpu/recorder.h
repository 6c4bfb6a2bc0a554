#pragma once
// Replays a plan's steps into a command list.
#include <array>
#include <cstdint>
#include <optional>
#include <vector>

#include "exec/gpu/expert_pools.h"
#include "exec/gpu/kv_cache.h"
#include "exec/gpu/plan.h"
#include "exec/gpu/weights.h"
#include "gpu/device.h"
#include "kernels/common/matrix.h"
#include "kernels/quantize_act/quantize_act.h"

namespace doppler::gpu_exec {

/// What a pass works on besides the weights. Made once, for the largest pass.
struct Workspace {
  std::vector<gpu::Buffer> slots;
  gpu::Buffer ids;                       // u32 [max_chunk]
  std::array<gpu::Buffer, 2> quantized;  // int8 activations: StaticPlan::quantized_bytes
  gpu::Buffer scratch;                   // of attention
  gpu::Buffer expert_groups;             // kernels::ExpertGroups of the layer that runs
  gpu::Buffer places;                    // u32 [experts]: slots of its experts, where they come on demand
  std::vector<gpu::Buffer> rope_tables;  // rows of this pass

  static Result<Workspace> make(gpu::Device& device, const graph::Graph& graph, const StaticPlan& fixed,
                                const GpuOptions& options);
  uint64_t size_bytes() const;
};

struct Pass {
  const GpuKvCache& kv;
  uint32_t position = 0;        // of the first token
  uint32_t rows = 0;            // tokens
  uint32_t first_selected = 0;  // rows [first_selected, first_selected + selected) go through the head
  uint32_t selected = 0;
};

class Recorder {
 public:
  Recorder(gpu::Device& device, const graph::Graph& graph, const StaticPlan& fixed, const GpuWeights& weights,
           const ExpertPools& experts, const Workspace& work)
      : device_(device), graph_(graph), fixed_(fixed), weights_(weights), experts_(experts), work_(work) {}

  Result<void> record(gpu::Commands& commands, const Step& step, const Pass& pass) const;

  /// The view's rows in its buffer.
  kernels::Matrix matrix(const graph::View& view, const Pass& pass) const;

 private:
  /// Where a step that quantizes puts the int8 form of `out`.
  std::optional<kernels::QuantizedAct> quantized_along(const Step& step, const kernels::Matrix& out) const;
  Result<void> record_norm(gpu::Commands& commands, const Step& step, const Pass& pass) const;
  Result<void> record_layer_norm(gpu::Commands& commands, const graph::Node& node, const Pass& pass) const;
  Result<void> record_gated_act(gpu::Commands& commands, const Step& step, const Pass& pass) const;
  Result<void> record_linear(gpu::Commands& commands, const Step& step, const Pass& pass) const;
  Result<void> record_rope_kv(gpu::Commands& commands, const Step& step, const Pass& pass) const;
  Result<void> record_attention(gpu::Commands& commands, const Step& step, const Pass& pass) const;
  Result<void> record_experts(gpu::Commands& commands, const Step& step, const Pass& pass) const;
  Result<void> record_expert_linear(gpu::Commands& commands, const Step& step, const Pass& pass) const;

  gpu::Device& device_;
  const graph::Graph& graph_;
  const StaticPlan& fixed_;
  const GpuWeights& weights_;
  const ExpertPools& experts_;
  const Workspace& work_;
};

}  // namespace doppler::gpu_exec
