#pragma once
// An executor for a model on the device that was asked for.
#include <memory>
#include <string>

#include "base/progress.h"
#include "base/result.h"
#include "exec/executor.h"
#include "model/model.h"

namespace doppler {

struct BackendOptions {
  std::string device = "auto";
  Precision precision = Precision::kFast;
  unsigned threads = 0;
  uint32_t max_chunk = 512;
  uint64_t expert_memory_bytes = 0;  // GpuOptions::expert_memory_bytes
  Progress progress;
};

struct Backend {
  std::unique_ptr<Executor> executor;
  bool on_gpu = false;
  std::string reason;  // why this device
};

/// `model` must outlive the backend. With "auto" a GPU that cannot take the model gives way to the CPU.
Result<Backend> make_backend(const model::LoadedModel& model, const BackendOptions& options);

}  // namespace doppler
