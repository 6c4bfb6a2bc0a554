#pragma once
// The experts of a graph on the device: pools of slots, one expert a slot.
#include <span>
#include <vector>

#include "exec/gpu/plan.h"
#include "gpu/device.h"
#include "graph/weights.h"
#include "kernels/expert_linear/expert_linear.h"

namespace doppler::gpu_exec {

/// One matrix of one expert, packed for any slot.
struct PackedMatrix {
  std::array<kernels::PackedSegment, 4> planes;
  std::vector<float> bias;  // empty: none
};
using PackedExpert = std::vector<PackedMatrix>;  // in the order of its layer's matrices

/// Packs an expert of a layer, its bytes read from `source`, whose pages are released.
Result<PackedExpert> pack_expert(const graph::Graph& graph, const ExpertLayer& layer, uint32_t expert,
                                 const graph::WeightSource& source);

class ExpertPools {
 public:
  /// Makes the buffers; the slots are empty. Errors: kOutOfMemory.
  static Result<ExpertPools> make(gpu::Device& device, const StaticPlan& fixed);

  /// Copies a packed expert into a slot. Its queue has the device run what was submitted before first.
  Result<void> write(gpu::Device& device, uint32_t pool, uint32_t slot, const PackedExpert& expert);

  /// The same straight from the source, a few MiB of host memory at a time.
  Result<void> load(gpu::Device& device, const graph::Graph& graph, const ExpertLayer& layer, uint32_t expert,
                    uint32_t slot, const graph::WeightSource& source);

  kernels::ExpertStack stack(uint32_t pool, uint32_t matrix, uint32_t part) const;
  uint64_t size_bytes() const;

 private:
  struct Part {
    gpu::Buffer buffer, bias;
    kernels::PackedLayout layout;
    SlotRange slots;
  };
  struct Matrix {
    uint32_t rows = 0;  // of one expert
    std::vector<Part> parts;
  };
  // The part that a slot lies in.
  static const Part& part_of(const Matrix& matrix, uint32_t slot);
  static Result<void> write_bias(gpu::Device& device, const Matrix& matrix, uint32_t slot,
                                 std::span<const float> bias);
  std::vector<std::vector<Matrix>> pools_;
};

}  // namespace doppler::gpu_exec
