#pragma once
// A graph's weights on the device: matrices packed for the kernels, norms side by side in one buffer.
#include <vector>

#include "base/progress.h"
#include "exec/gpu/plan.h"
#include "gpu/device.h"
#include "graph/weights.h"
#include "kernels/weights/packed.h"

namespace doppler::gpu_exec {

class GpuWeights {
 public:
  /// Copies every weight, a few MiB of host memory at a time; the source's pages are released as they are
  /// read.
  static Result<GpuWeights> upload(gpu::Device& device, const graph::Graph& graph,
                                   const std::vector<std::vector<WeightPart>>& parts,
                                   const graph::WeightSource& source, const Progress& progress);

  kernels::PackedWeight part(graph::WeightId weight, uint32_t index) const;
  const gpu::Buffer& norms() const { return norms_; }
  uint32_t norm_base(graph::WeightId weight) const { return norm_base_[weight]; }  // floats into norms()
  uint64_t size_bytes() const;

 private:
  struct Part {
    gpu::Buffer buffer;
    kernels::PackedLayout layout;
    uint32_t first_row;
  };
  std::vector<std::vector<Part>> parts_;  // per weight
  gpu::Buffer norms_;
  std::vector<uint32_t> norm_base_;  // per weight; kNone for matrices
};

}  // namespace doppler::gpu_exec
