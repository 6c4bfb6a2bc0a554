#include "engine/backend.h"

#include "base/log.h"
#include "engine/device_choice.h"
#include "exec/gpu/gpu_executor.h"

namespace doppler {
namespace {

Result<Backend> make_cpu_backend(const model::LoadedModel& model, const BackendOptions& options,
                                 std::string reason) {
  if (options.expert_memory_bytes > 0)
    log(LogLevel::kWarning,
        "[device] --expert-memory is without effect on the CPU: experts are read where the file is mapped");
  DOPPLER_TRY(auto executor, make_cpu_executor(model.graph, *model.weights,
                                               {.precision = options.precision,
                                                .threads = options.threads,
                                                .max_chunk = options.max_chunk}));
  return Backend{std::move(executor), false, std::move(reason)};
}

Result<Backend> make_gpu_backend(const model::LoadedModel& model, const BackendOptions& options,
                                 const DeviceChoice& choice) {
  DOPPLER_TRY(std::shared_ptr<gpu::Device> device,
              gpu::Device::create({.name = choice.adapter, .checked_shaders = false}));
  DOPPLER_TRY(auto executor, make_gpu_executor(std::move(device), model.graph, *model.weights,
                                               {.precision = options.precision,
                                                .max_chunk = options.max_chunk,
                                                .expert_memory_bytes = options.expert_memory_bytes},
                                               options.progress));
  const auto experts = executor->expert_stats();
  if (options.expert_memory_bytes > 0 && !experts)
    log(LogLevel::kWarning, "[device] --expert-memory is without effect: the model has no experts");
  if (experts && experts->slots == experts->slots_wanted)
    log(LogLevel::kInfo, "[device] all {} experts fit; without --expert-memory they would run faster",
        experts->slots);
  return Backend{std::move(executor), true, choice.reason};
}

}  // namespace

Result<Backend> make_backend(const model::LoadedModel& model, const BackendOptions& options) {
  DOPPLER_TRY(const DeviceChoice choice, choose_device(options.device));
  log(LogLevel::kInfo, "[device] {}", choice.reason);
  if (!choice.gpu) return make_cpu_backend(model, options, choice.reason);
  auto backend = make_gpu_backend(model, options, choice);
  if (backend || !choice.may_fall_back || backend.error().code == ErrorCode::kCancelled) return backend;
  log(LogLevel::kWarning, "[device] the GPU cannot take this model ({}); the CPU runs it",
      backend.error().message);
  return make_cpu_backend(model, options, choice.reason + ", but: " + backend.error().message);
}

}  // namespace doppler
