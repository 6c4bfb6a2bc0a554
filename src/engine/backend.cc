#include "engine/backend.h"

#include "base/log.h"
#include "engine/device_choice.h"

namespace doppler {
namespace {

Result<Backend> make_cpu_backend(const model::LoadedModel& model, const BackendOptions& options,
                                 std::string reason) {
  DOPPLER_TRY(auto executor, make_cpu_executor(model.graph, *model.weights,
                                               {.precision = options.precision,
                                                .threads = options.threads,
                                                .max_chunk = options.max_chunk}));
  return Backend{nullptr, std::move(executor), std::move(reason)};
}

}  // namespace

Result<Backend> make_backend(const model::LoadedModel& model, const BackendOptions& options) {
  DOPPLER_TRY(const DeviceChoice choice, choose_device(options.device));
  log(LogLevel::kInfo, "[device] {}", choice.reason);
  return make_cpu_backend(model, options, choice.reason);
}

}  // namespace doppler
