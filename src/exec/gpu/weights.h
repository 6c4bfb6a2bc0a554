#pragma once
// A graph's weights on the device: matrices packed for the kernels; vectors (norms, biases, sinks) as f32,
// side by side in one buffer.
#include <vector>

#include "base/progress.h"
#include "exec/gpu/plan.h"
#include "gpu/device.h"
#include "graph/weights.h"
#include "kernels/weights/packed.h"

namespace doppler::gpu_exec {

class UploadMeter;  // weights.cc

class GpuWeights {
 public:
  /// Copies every weight, a few MiB of host memory at a time; the source's pages are released as they are
  /// read.
  static Result<GpuWeights> upload(gpu::Device& device, const graph::Graph& graph,
                                   const std::vector<std::vector<WeightPart>>& parts,
                                   const graph::WeightSource& source, const Progress& progress);

  kernels::PackedWeight part(graph::WeightId weight, uint32_t index) const;
  const gpu::Buffer& vectors() const { return vectors_; }
  /// Where a norm, a bias or a head's sinks begin: floats into vectors().
  uint32_t vector_base(graph::WeightId weight) const { return vector_base_[weight]; }
  uint64_t size_bytes() const;

 private:
  struct Part {
    gpu::Buffer buffer;
    kernels::PackedLayout layout;
    uint32_t first_row;
  };
  std::vector<std::vector<Part>> parts_;  // per weight
  Result<void> upload_vectors(gpu::Device& device, const graph::Graph& graph,
                              const graph::WeightSource& source, UploadMeter& meter);
  Result<void> upload_matrix(gpu::Device& device, const graph::Weight& weight, graph::WeightId id,
                             const std::vector<WeightPart>& parts, const graph::WeightSource& source,
                             UploadMeter& meter);

  gpu::Buffer vectors_;
  std::vector<uint32_t> vector_base_;  // per weight; kNone for matrices
};

}  // namespace doppler::gpu_exec
