// Device: creation, buffers, loss.
#include "gpu/device.h"

#include <algorithm>

#include "base/log.h"
#include "gpu/native/adapters.h"
#include "gpu/native/driver.h"
#include "gpu/native/state.h"

namespace doppler::gpu {
namespace {

void on_lost(WGPUDevice const*, WGPUDeviceLostReason, WGPUStringView message, void* user, void*) {
  auto* state = static_cast<DeviceState*>(user);
  const std::lock_guard lock(state->callback_mutex);
  if (!state->lost) state->lost = text(message);
}

void on_uncaptured(WGPUDevice const*, WGPUErrorType type, WGPUStringView message, void* user, void*) {
  auto* state = static_cast<DeviceState*>(user);
  const std::lock_guard lock(state->callback_mutex);
  if (!state->uncaptured) state->uncaptured = error_of(type, message);
}

std::vector<WGPUFeatureName> wanted_features(const Api& api, WGPUAdapter adapter, const Caps& caps) {
  std::vector<WGPUFeatureName> features;
  if (caps.f16) features.push_back(WGPUFeatureName_ShaderF16);
  if (caps.timestamps) features.push_back(WGPUFeatureName_TimestampQuery);
  if (caps.subgroups && api.dawn) features.push_back(WGPUFeatureName_Subgroups);
  if (caps.subgroups && !api.dawn)
    for (WGPUNativeFeature feature : {WGPUNativeFeature_Subgroup, WGPUNativeFeature_SubgroupBarrier})
      if (api.AdapterHasFeature(adapter, static_cast<WGPUFeatureName>(feature)))
        features.push_back(static_cast<WGPUFeatureName>(feature));
  return features;
}

Result<WGPUDevice> request_device(DeviceState& state, const Adapter& adapter) {
  const Api& api = *state.api;
  const std::vector<WGPUFeatureName> features = wanted_features(api, adapter.handle, state.caps);
  DawnToggles toggles = dawn_toggles(state.checked_shaders);
  WGPUDeviceDescriptor desc = WGPU_DEVICE_DESCRIPTOR_INIT;
  if (api.dawn) desc.nextInChain = &toggles.chain;
  desc.label = view("doppler");
  desc.requiredFeatureCount = features.size();
  desc.requiredFeatures = features.data();
  desc.requiredLimits = &adapter.limits;
  desc.deviceLostCallbackInfo.mode = WGPUCallbackMode_AllowProcessEvents;
  desc.deviceLostCallbackInfo.callback = on_lost;
  desc.deviceLostCallbackInfo.userdata1 = &state;
  desc.uncapturedErrorCallbackInfo.callback = on_uncaptured;
  desc.uncapturedErrorCallbackInfo.userdata1 = &state;
  struct Answer {
    WGPUDevice device = nullptr;
    std::string message;
    bool done = false;
  } answer;
  WGPURequestDeviceCallbackInfo callback = WGPU_REQUEST_DEVICE_CALLBACK_INFO_INIT;
  callback.mode = WGPUCallbackMode_AllowProcessEvents;
  callback.userdata1 = &answer;
  callback.callback = [](WGPURequestDeviceStatus, WGPUDevice device, WGPUStringView message, void* user,
                         void*) { *static_cast<Answer*>(user) = {device, text(message), true}; };
  api.AdapterRequestDevice(adapter.handle, &desc, callback);
  while (!answer.done) api.InstanceProcessEvents(state.instance);
  if (answer.device == nullptr)
    return fail(ErrorCode::kGpu, "[gpu] {} refuses a device: {}", adapter.caps.adapter, answer.message);
  return answer.device;
}

// The size a compute shader really gets: wgpu-native reports 0, and some drivers choose among several.
Result<uint32_t> probe_subgroup_size(Device& device) {
  constexpr std::string_view kSource =
      "@group(0) @binding(0) var<storage, read_write> size: array<u32>;\n"
      "@compute @workgroup_size(64)\n"
      "fn main(@builtin(subgroup_size) n: u32, @builtin(local_invocation_index) i: u32) { if (i == 0) { "
      "size[0] = n; } }\n";
  DOPPLER_TRY(const Pipeline* pipeline,
              device.pipeline({.label = "probe/subgroup_size", .source = kSource, .uses_subgroups = true}));
  DOPPLER_TRY(const Buffer size, device.create_buffer(4, "probe"));
  Commands commands = device.begin("probe");
  const Binding binding{&size};
  commands.dispatch(*pipeline, {&binding, 1}, {}, {1, 1, 1});
  DOPPLER_CHECK_OK(device.submit(std::move(commands)));
  uint32_t measured = 0;
  DOPPLER_CHECK_OK(device.read(size, 0, std::as_writable_bytes(std::span(&measured, 1))));
  return measured;
}

}  // namespace

Buffer::Buffer(Buffer&& other) noexcept
    : device_(std::move(other.device_)),
      handle_(std::exchange(other.handle_, nullptr)),
      bytes_(std::exchange(other.bytes_, 0)) {}

Buffer& Buffer::operator=(Buffer&& other) noexcept {
  std::swap(device_, other.device_);
  std::swap(handle_, other.handle_);
  std::swap(bytes_, other.bytes_);
  return *this;
}

Buffer::~Buffer() {
  if (handle_ == nullptr) return;
  // Released, not destroyed: a recorded list may still refer to it.
  device_->forget_bind_groups_of(static_cast<WGPUBuffer>(handle_));
  device_->api->BufferRelease(static_cast<WGPUBuffer>(handle_));
  device_->allocated_bytes -= bytes_;
}

Result<std::unique_ptr<Device>> Device::create(const DeviceOptions& options) {
  auto state = std::make_shared<DeviceState>();
  DOPPLER_TRY(state->api, load_api(options.library));
  DOPPLER_TRY(const DriverChoice driver, DriverChoice::make(options.name));
  DOPPLER_TRY(Adapters adapters, Adapters::open(state->api, options.checked_shaders));
  DOPPLER_TRY(const Adapter* adapter, adapters.find(options.name));
  state->caps = adapter->caps;
  state->caps.f16 = state->caps.f16 && !options.disable_f16;
  state->caps.subgroups = state->caps.subgroups && !options.disable_subgroups;
  state->caps.max_storage_buffers =
      std::min(state->caps.max_storage_buffers, static_cast<uint32_t>(kMaxBindings) - 1);
  state->checked_shaders = options.checked_shaders;
  state->instance = adapters.take_instance();
  DOPPLER_TRY(state->device, request_device(*state, *adapter));
  state->queue = state->api->DeviceGetQueue(state->device);
  std::unique_ptr<Device> device(new Device);
  device->state_ = state;
  if (state->caps.subgroups) {
    Result<uint32_t> size = probe_subgroup_size(*device);
    if (!size && size.error().code == ErrorCode::kDeviceLost) return forward_error(size);
    if (!size)
      log(LogLevel::kWarning, "[gpu] {} says it has subgroups, but: {}", state->caps.adapter,
          size.error().message);
    state->caps.subgroups = size && *size > 0;
    state->caps.subgroup_size = size ? *size : 0;
  }
  log(LogLevel::kInfo, "[gpu] {} through {} ({}): f16 {}, subgroups of {}, bindings up to {} MiB",
      state->caps.adapter, state->caps.backend, state->caps.library, state->caps.f16 ? "yes" : "no",
      state->caps.subgroup_size, state->caps.max_binding_bytes >> 20);
  return device;
}

Device::~Device() = default;

const Caps& Device::caps() const { return state_->caps; }

bool Device::lost() const {
  state_->pump(/*wait=*/false);
  const std::lock_guard lock(state_->callback_mutex);
  return state_->lost.has_value();
}

uint64_t Device::allocated_bytes() const { return state_->allocated_bytes; }

Result<Buffer> Device::create_buffer(uint64_t bytes, std::string_view label, BufferUse use) {
  DOPPLER_CHECK_OK(state_->check());
  const uint64_t rounded = std::max<uint64_t>(4, (bytes + 3) & ~3ull);
  if (bytes > state_->caps.max_buffer_bytes || rounded > state_->caps.max_buffer_bytes)
    return fail(ErrorCode::kOutOfMemory, "[gpu] buffer {} of {} bytes was wanted, {} allows {} at most",
                label, bytes, state_->caps.adapter, state_->caps.max_buffer_bytes);
  const WGPUBufferUsage usage =
      use == BufferUse::kUniform
          ? WGPUBufferUsage_Uniform | WGPUBufferUsage_CopyDst
          : WGPUBufferUsage_Storage | WGPUBufferUsage_CopySrc | WGPUBufferUsage_CopyDst;
  DOPPLER_TRY(WGPUBuffer handle, state_->make_buffer(rounded, usage, label));
  Buffer buffer;
  buffer.device_ = state_;
  buffer.handle_ = handle;
  buffer.bytes_ = rounded;
  state_->allocated_bytes += rounded;
  return buffer;
}

void Device::destroy_for_test() {
  state_->api->DeviceDestroy(state_->device);
  for (int i = 0; i < 100; ++i) state_->pump(/*wait=*/false);
  const std::lock_guard lock(state_->callback_mutex);
  if (!state_->lost) state_->lost = "destroyed";
}

}  // namespace doppler::gpu
