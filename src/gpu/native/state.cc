#include "gpu/native/state.h"

#include <chrono>
#include <thread>

namespace doppler::gpu {
namespace {

struct ScopeAnswer {
  bool done = false;
  std::optional<Error> error;
};

void on_scope(WGPUPopErrorScopeStatus, WGPUErrorType type, WGPUStringView message, void* user, void*) {
  auto* answer = static_cast<ScopeAnswer*>(user);
  answer->done = true;
  // A failed status (the device went) is not an error of what was made: check() reports the loss.
  if (type != WGPUErrorType_NoError && type != static_cast<WGPUErrorType>(0))
    answer->error = error_of(type, message);
}

}  // namespace

Error error_of(WGPUErrorType type, WGPUStringView message) {
  std::string what = text(message);
  // wgpu-native reports a failed allocation as a validation error with this text.
  const bool memory =
      type == WGPUErrorType_OutOfMemory || what.find("Not enough memory left") != std::string::npos;
  return {memory ? ErrorCode::kOutOfMemory : ErrorCode::kGpu, std::move(what)};
}

DeviceState::~DeviceState() {
  if (device != nullptr) {
    clear_bind_groups();
    for (auto& [hash, pipeline] : pipelines)
      if (pipeline->handle != nullptr) api->ComputePipelineRelease(pipeline->handle);
    for (auto& [kinds, layout] : layouts) {
      if (layout.pipeline != nullptr) api->PipelineLayoutRelease(layout.pipeline);
      if (layout.group != nullptr) api->BindGroupLayoutRelease(layout.group);
    }
    for (WGPUBuffer arena : arenas) api->BufferRelease(arena);
    for (auto& [size, buffers] : readback)
      for (WGPUBuffer buffer : buffers) api->BufferRelease(buffer);
    if (queue != nullptr) api->QueueRelease(queue);
    api->DeviceRelease(device);
  }
  if (instance != nullptr) {
    if (device != nullptr) api->InstanceProcessEvents(instance);  // the loss callback runs while we are here
    api->InstanceRelease(instance);
  }
}

Result<void> DeviceState::check() {
  const std::lock_guard lock(callback_mutex);
  if (lost)
    return fail(ErrorCode::kDeviceLost, "[gpu] the device {} is lost ({}); open it again", caps.adapter,
                *lost);
  if (uncaptured) {
    Error error = *std::exchange(uncaptured, std::nullopt);
    return tl::unexpected<Error>(std::move(error));
  }
  return {};
}

void DeviceState::pump(bool wait) {
  {
    const std::lock_guard lock(callback_mutex);
    if (lost) wait = false;
  }
  if (api->DevicePoll != nullptr) api->DevicePoll(device, wait, nullptr);
  api->InstanceProcessEvents(instance);
}

Result<void> DeviceState::wait_idle() {
  DOPPLER_CHECK_OK(check());
  staged_bytes = 0;
  if (api->DevicePoll != nullptr) {
    pump(/*wait=*/true);
    return check();
  }
  struct Answer {
    bool done = false;
  } answer;
  WGPUQueueWorkDoneCallbackInfo callback = WGPU_QUEUE_WORK_DONE_CALLBACK_INFO_INIT;
  callback.mode = WGPUCallbackMode_AllowProcessEvents;
  callback.userdata1 = &answer;
  callback.callback = [](WGPUQueueWorkDoneStatus, WGPUStringView, void* user, void*) {
    static_cast<Answer*>(user)->done = true;
  };
  api->QueueOnSubmittedWorkDone(queue, callback);
  for (int turns = 0; !answer.done; ++turns) {
    pump(/*wait=*/false);
    // Short work is met spinning, long work does not take a core from a software driver.
    if (turns > 200) std::this_thread::sleep_for(std::chrono::microseconds(turns > 2000 ? 500 : 20));
  }
  return check();
}

std::optional<Error> DeviceState::scoped(const std::function<void()>& make) {
  constexpr WGPUErrorFilter kFilters[] = {WGPUErrorFilter_Internal, WGPUErrorFilter_OutOfMemory,
                                          WGPUErrorFilter_Validation};
  // wgpu-native ends the process at the internal filter, and has no such errors.
  const size_t first = api->dawn ? 0 : 1;
  for (size_t i = first; i < std::size(kFilters); ++i) api->DevicePushErrorScope(device, kFilters[i]);
  make();
  std::optional<Error> error;
  for (size_t i = first; i < std::size(kFilters); ++i) {
    ScopeAnswer answer;
    WGPUPopErrorScopeCallbackInfo callback = WGPU_POP_ERROR_SCOPE_CALLBACK_INFO_INIT;
    callback.mode = WGPUCallbackMode_AllowProcessEvents;
    callback.userdata1 = &answer;
    callback.callback = on_scope;
    api->DevicePopErrorScope(device, callback);
    while (!answer.done) api->InstanceProcessEvents(instance);
    // Out of memory also makes what was to be made invalid: keep the reason.
    if (answer.error && (!error || answer.error->code == ErrorCode::kOutOfMemory))
      error = std::move(answer.error);
  }
  return error;
}

Result<WGPUBuffer> DeviceState::make_buffer(uint64_t bytes, WGPUBufferUsage usage, std::string_view label) {
  WGPUBufferDescriptor desc = WGPU_BUFFER_DESCRIPTOR_INIT;
  desc.label = view(label);
  desc.usage = usage;
  desc.size = bytes;
  WGPUBuffer buffer = nullptr;
  const std::optional<Error> error = scoped([&] { buffer = api->DeviceCreateBuffer(device, &desc); });
  if (!error && buffer != nullptr) return buffer;
  if (buffer != nullptr) api->BufferRelease(buffer);
  if (error && error->code != ErrorCode::kOutOfMemory)
    return fail(error->code, "[gpu] buffer {} of {} bytes: {}", label, bytes, error->message);
  return fail(ErrorCode::kOutOfMemory,
              "[gpu] buffer {} of {} bytes was wanted, {} has no memory left ({} bytes taken); use a smaller "
              "model or "
              "context",
              label, bytes, caps.adapter, allocated_bytes);
}

}  // namespace doppler::gpu
