#pragma once
// Runs a graph on a WebGPU device: the planner turns it into dispatches, the recorder replays them.
#include <memory>

#include "base/progress.h"
#include "exec/executor.h"
#include "gpu/device.h"

namespace doppler {

struct GpuOptions {
  Precision precision = Precision::kFast;
  uint32_t max_chunk = 512;        // most tokens a forward pass; activations are sized for it
  uint64_t max_binding_bytes = 0;  // split tensors above this many bytes; 0: the adapter's limit
  uint64_t expert_memory_bytes =
      0;  // at most this many bytes of experts on the device, loaded as they are asked for; 0: all are there
};

/// Copies the weights to the device, re-laid out for its kernels, releasing each one's pages once it is
/// there. `weights` is not used afterwards, except for experts on demand: then it must outlive the executor,
/// and a thread of its own reads from it. Errors: kOutOfMemory, kCancelled (the progress function said
/// stop), kUnsupported (a tensor whose single row exceeds a binding), and what the weight source reports.
Result<std::unique_ptr<Executor>> make_gpu_executor(std::shared_ptr<gpu::Device> device, graph::Graph graph,
                                                    const graph::WeightSource& weights,
                                                    const GpuOptions& options, const Progress& progress = {});

}  // namespace doppler
