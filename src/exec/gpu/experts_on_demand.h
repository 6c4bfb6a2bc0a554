#pragma once
// Runs a plan whose experts are not all on the device: routes are read back, missing experts loaded, and the
// steps that use them repeated in waves where a pass asks for more than there are slots.
#include <functional>
#include <vector>

#include "exec/gpu/expert_pools.h"
#include "exec/gpu/expert_prefetch.h"
#include "exec/gpu/expert_slots.h"
#include "exec/gpu/recorder.h"

namespace doppler::gpu_exec {

class ExpertsOnDemand {
 public:
  /// All must outlive it. `work.places` is where it says which expert is in which slot.
  ExpertsOnDemand(gpu::Device& device, const graph::Graph& graph, const StaticPlan& fixed,
                  const Recorder& recorder, const Workspace& work, ExpertPools& pools,
                  const graph::WeightSource& source);

  /// Called after each step that has run; empty: steps run together.
  using AfterStep = std::function<Result<void>(const Step&)>;

  Result<void> run(const std::vector<Step>& steps, const Pass& pass, std::string_view label,
                   const AfterStep& after);

  const ExpertStats& stats() const { return stats_; }

 private:
  using Steps = std::span<const Step>;
  Result<void> run_steps(Steps steps, const Pass& pass, std::string_view label, const AfterStep& after);
  Result<std::vector<uint32_t>> read_routes(const Step& route, const Pass& pass);
  std::vector<std::vector<uint32_t>> waves(uint32_t layer, const std::vector<uint32_t>& experts);
  Result<void> make_resident(uint32_t layer, const std::vector<uint32_t>& experts);
  Result<uint32_t> load(ExpertKey key);
  void remember(uint32_t layer, const std::vector<uint32_t>& experts);
  void prefetch(uint32_t layer);

  gpu::Device& device_;
  const graph::Graph& graph_;
  const StaticPlan& fixed_;
  const Recorder& recorder_;
  const Workspace& work_;
  ExpertPools& pools_;
  const graph::WeightSource& source_;
  std::vector<ExpertSlots> slots_;             // of each pool
  std::vector<std::vector<uint32_t>> recent_;  // of each layer: experts, the last used first
  ExpertStats stats_;
  ExpertPrefetch prefetch_;
};

}  // namespace doppler::gpu_exec
