#include "gpu/native/adapters.h"

#include <algorithm>
#include <cctype>
#include <charconv>

#include "gpu/native/driver.h"

namespace doppler::gpu {
namespace {

constexpr WGPUSType kDawnTogglesType = static_cast<WGPUSType>(0x0005000A);

std::string lower(std::string_view text) {
  std::string out(text);
  for (char& c : out) c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  return out;
}

const char* backend_name(WGPUBackendType type) {
  switch (type) {
    case WGPUBackendType_Vulkan:
      return "Vulkan";
    case WGPUBackendType_Metal:
      return "Metal";
    case WGPUBackendType_D3D12:
      return "D3D12";
    default:
      return nullptr;  // GL, null and browser back ends are not used
  }
}

int rank(WGPUAdapterType type) {
  switch (type) {
    case WGPUAdapterType_DiscreteGPU:
      return 0;
    case WGPUAdapterType_IntegratedGPU:
      return 1;
    case WGPUAdapterType_CPU:
      return 3;
    default:
      return 2;
  }
}

Caps caps_of(const Api& api, WGPUAdapter handle, const WGPUAdapterInfo& info, const WGPULimits& limits) {
  Caps caps;
  caps.adapter = text(info.device);
  caps.backend = backend_name(info.backendType);
  caps.library = api.path;
  caps.hardware = info.adapterType != WGPUAdapterType_CPU;
  caps.unified_memory = info.adapterType != WGPUAdapterType_DiscreteGPU;
  caps.f16 = api.AdapterHasFeature(handle, WGPUFeatureName_ShaderF16) != 0;
  caps.subgroups = has_subgroups(api, handle);
  caps.timestamps = api.AdapterHasFeature(handle, WGPUFeatureName_TimestampQuery) != 0;
  caps.dawn = api.dawn;
  caps.max_workgroup_invocations = limits.maxComputeInvocationsPerWorkgroup;
  caps.max_workgroup_size_x = limits.maxComputeWorkgroupSizeX;
  caps.max_workgroups_per_dimension = limits.maxComputeWorkgroupsPerDimension;
  caps.max_workgroup_storage_bytes = limits.maxComputeWorkgroupStorageSize;
  caps.max_storage_buffers = limits.maxStorageBuffersPerShaderStage;
  caps.min_storage_offset_alignment = limits.minStorageBufferOffsetAlignment;
  caps.min_uniform_offset_alignment = limits.minUniformBufferOffsetAlignment;
  caps.max_buffer_bytes = limits.maxBufferSize;
  caps.max_binding_bytes =
      std::min<uint64_t>(limits.maxStorageBufferBindingSize, limits.maxBufferSize) & ~3ull;
  return caps;
}

WGPUAdapter request_adapter(const Api& api, WGPUInstance instance, const WGPURequestAdapterOptions& options) {
  struct Answer {
    WGPUAdapter adapter = nullptr;
    bool done = false;
  } answer;
  WGPURequestAdapterCallbackInfo callback = WGPU_REQUEST_ADAPTER_CALLBACK_INFO_INIT;
  callback.mode = WGPUCallbackMode_AllowProcessEvents;
  callback.userdata1 = &answer;
  callback.callback = [](WGPURequestAdapterStatus, WGPUAdapter adapter, WGPUStringView, void* user, void*) {
    *static_cast<Answer*>(user) = {adapter, true};
  };
  api.InstanceRequestAdapter(instance, &options, callback);
  while (!answer.done) api.InstanceProcessEvents(instance);
  return answer.adapter;
}

}  // namespace

DawnToggles dawn_toggles(bool checked_shaders) {
  static const char* const kEnabled[] = {"allow_unsafe_apis", "vulkan_enable_f16_on_nvidia",
                                         "use_vulkan_memory_model", "disable_robustness"};
  DawnToggles toggles{};
  toggles.chain.sType = kDawnTogglesType;
  toggles.enabled_count = checked_shaders ? 3 : 4;
  toggles.enabled = kEnabled;
  return toggles;
}

bool has_subgroups(const Api& api, WGPUAdapter adapter) {
  if (api.dawn) return api.AdapterHasFeature(adapter, WGPUFeatureName_Subgroups) != 0;
  return api.AdapterHasFeature(adapter, static_cast<WGPUFeatureName>(WGPUNativeFeature_Subgroup)) != 0;
}

void Adapters::add(WGPUAdapter handle) {
  Adapter adapter;
  adapter.handle = handle;
  WGPUAdapterInfo info = WGPU_ADAPTER_INFO_INIT;
  api_->AdapterGetInfo(handle, &info);
  api_->AdapterGetLimits(handle, &adapter.limits);
  adapter.limits.nextInChain = nullptr;
  adapter.type = info.adapterType;
  adapter.driver = text(info.description);
  bool usable = backend_name(info.backendType) != nullptr;
  if (usable) adapter.caps = caps_of(*api_, handle, info, adapter.limits);
  // Without an enumeration one adapter may be found by several requests.
  for (const Adapter& known : list_)
    usable = usable &&
             (!api_->dawn || known.caps.adapter != adapter.caps.adapter || known.driver != adapter.driver);
  api_->AdapterInfoFreeMembers(info);
  if (usable)
    list_.push_back(std::move(adapter));
  else
    api_->AdapterRelease(handle);
}

Result<Adapters> Adapters::open(std::shared_ptr<const Api> api, bool checked_shaders) {
  DawnToggles toggles = dawn_toggles(checked_shaders);
  WGPUInstanceExtras extras{};
  extras.chain.sType = static_cast<WGPUSType>(WGPUSType_InstanceExtras);
  extras.backends = WGPUInstanceBackend_Vulkan | WGPUInstanceBackend_Metal | WGPUInstanceBackend_DX12;
  extras.flags = WGPUInstanceFlag_Default;
  WGPUInstanceDescriptor desc = WGPU_INSTANCE_DESCRIPTOR_INIT;
  desc.nextInChain = api->dawn ? &toggles.chain : &extras.chain;
  WGPUInstance instance = api->CreateInstance(&desc);
  if (instance == nullptr) return fail(ErrorCode::kGpu, "[gpu] {} gave no WebGPU instance", api->path);
  Adapters adapters(std::move(api), instance);
  const Api& a = *adapters.api_;
  if (a.InstanceEnumerateAdapters != nullptr) {
    WGPUInstanceEnumerateAdapterOptions options{};
    options.backends = extras.backends;
    std::vector<WGPUAdapter> handles(a.InstanceEnumerateAdapters(instance, &options, nullptr));
    if (!handles.empty()) a.InstanceEnumerateAdapters(instance, &options, handles.data());
    for (WGPUAdapter handle : handles) adapters.add(handle);
  } else {
    for (int request = 0; request < 3; ++request) {
      WGPURequestAdapterOptions options = WGPU_REQUEST_ADAPTER_OPTIONS_INIT;
      options.nextInChain = &toggles.chain;
      options.powerPreference =
          request == 1 ? WGPUPowerPreference_LowPower : WGPUPowerPreference_HighPerformance;
      options.forceFallbackAdapter = request == 2;
      if (WGPUAdapter handle = request_adapter(a, instance, options); handle != nullptr) adapters.add(handle);
    }
  }
  // Insertion keeps the library's order within a rank (clang warns about the library inside
  // std::stable_sort).
  std::vector<Adapter>& list = adapters.list_;
  for (size_t i = 1; i < list.size(); ++i)
    for (size_t k = i; k > 0 && rank(list[k].type) < rank(list[k - 1].type); --k)
      std::swap(list[k], list[k - 1]);
  return adapters;
}

Adapters::~Adapters() {
  for (const Adapter& adapter : list_) api_->AdapterRelease(adapter.handle);
  if (instance_ != nullptr) api_->InstanceRelease(instance_);
}

Result<const Adapter*> Adapters::find(std::string_view name) const {
  if (list_.empty())
    return fail(ErrorCode::kNotFound,
                "[gpu] {} finds no Vulkan, Metal or Direct3D 12 adapter; install the GPU's driver, or "
                "`apt install mesa-vulkan-drivers` and ask for the device `lavapipe`",
                api_->path);
  if (name.empty()) return &list_[0];
  size_t index = 0;
  const auto [end, error] = std::from_chars(name.data(), name.data() + name.size(), index);
  if (error == std::errc() && end == name.data() + name.size() && index < list_.size()) return &list_[index];
  const std::string wanted = name == "lavapipe" ? "llvmpipe" : lower(name);
  std::string known;
  for (const Adapter& adapter : list_) {
    if (lower(adapter.caps.adapter).find(wanted) != std::string::npos) return &adapter;
    known += (known.empty() ? "" : ", ") + adapter.caps.adapter;
  }
  return fail(ErrorCode::kNotFound,
              "[gpu] an adapter named {} was wanted, there are: {}; see `doppler devices`", name, known);
}

Result<std::vector<AdapterInfo>> list_adapters(const std::string& library) {
  DOPPLER_TRY(std::shared_ptr<const Api> api, load_api(library));
  DOPPLER_TRY(const DriverChoice driver, DriverChoice::make(""));
  DOPPLER_TRY(const Adapters adapters, Adapters::open(std::move(api), /*checked_shaders=*/true));
  std::vector<AdapterInfo> infos;
  for (const Adapter& adapter : adapters.list()) infos.push_back({adapter.caps, adapter.driver});
  return infos;
}

}  // namespace doppler::gpu
