#pragma once
// The WebGPU library's entry points, found at run time. wgpu-native and Dawn share every standard one; what
// only one of them has is optional.
#include <webgpu.h>
#include <wgpu.h>

#include <memory>
#include <string>
#include <string_view>

#include "base/result.h"

namespace doppler::gpu {

// clang-format off: its result on these lists changes from run to run
#define DOPPLER_WEBGPU_REQUIRED(X) \
  X(CreateInstance) X(InstanceRelease) X(InstanceRequestAdapter) X(InstanceProcessEvents) \
  X(AdapterGetInfo) X(AdapterInfoFreeMembers) X(AdapterGetLimits) X(AdapterHasFeature) \
  X(AdapterRelease) X(AdapterRequestDevice) X(DeviceDestroy) X(DeviceRelease) X(DeviceGetQueue) \
  X(QueueRelease) X(DevicePushErrorScope) X(DevicePopErrorScope) X(DeviceCreateBuffer) \
  X(BufferAddRef) X(BufferRelease) X(BufferMapAsync) X(BufferGetConstMappedRange) X(BufferUnmap) \
  X(DeviceCreateShaderModule) X(ShaderModuleRelease) X(DeviceCreateBindGroupLayout) \
  X(BindGroupLayoutRelease) X(DeviceCreatePipelineLayout) X(PipelineLayoutRelease) \
  X(DeviceCreateComputePipeline) X(ComputePipelineRelease) X(DeviceCreateBindGroup) \
  X(BindGroupAddRef) X(BindGroupRelease) X(DeviceCreateCommandEncoder) X(CommandEncoderRelease) \
  X(CommandEncoderBeginComputePass) X(CommandEncoderCopyBufferToBuffer) \
  X(CommandEncoderResolveQuerySet) X(CommandEncoderFinish) X(CommandBufferRelease) \
  X(ComputePassEncoderSetPipeline) X(ComputePassEncoderSetBindGroup) \
  X(ComputePassEncoderDispatchWorkgroups) X(ComputePassEncoderEnd) X(ComputePassEncoderRelease) \
  X(QueueSubmit) X(QueueWriteBuffer) X(QueueOnSubmittedWorkDone) X(DeviceCreateQuerySet) \
  X(QuerySetRelease)

#define DOPPLER_WEBGPU_OPTIONAL(X) \
  X(DevicePoll) X(InstanceEnumerateAdapters) X(QueueGetTimestampPeriod) \
  X(DeviceCreateShaderModuleTrusted) X(SetLogCallback) X(SetLogLevel)
// clang-format on

struct Api {
#define DOPPLER_DECLARE(name) decltype(&::wgpu##name) name = nullptr;
  DOPPLER_WEBGPU_REQUIRED(DOPPLER_DECLARE)
  DOPPLER_WEBGPU_OPTIONAL(DOPPLER_DECLARE)
#undef DOPPLER_DECLARE
  std::string path;   // of the library
  bool dawn = false;  // no wgpuDevicePoll: Dawn's dialect
};

/// Loads a library and finds its entry points; it stays loaded for the life of the process. `requested` is a
/// path, or "": DOPPLER_WEBGPU, then Dawn beside the program, then the build's wgpu-native, then one beside
/// the program.
Result<std::shared_ptr<const Api>> load_api(const std::string& requested);

inline WGPUStringView view(std::string_view text) { return {text.data(), text.size()}; }
inline std::string text(WGPUStringView v) {
  if (v.data == nullptr) return {};
  return v.length == WGPU_STRLEN ? std::string(v.data) : std::string(v.data, v.length);
}

}  // namespace doppler::gpu
