#pragma once
// The instance and its adapters: what each offers, in a stable order, and which one a name means.
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "gpu/device.h"
#include "gpu/native/api.h"

namespace doppler::gpu {

/// Dawn's switches, chained to instance, adapter options and device. Not in wgpu-native's header.
struct DawnToggles {
  WGPUChainedStruct chain;
  size_t enabled_count;
  const char* const* enabled;
  size_t disabled_count;
  const char* const* disabled;
};
DawnToggles dawn_toggles(bool checked_shaders);

struct Adapter {
  WGPUAdapter handle = nullptr;
  Caps caps;
  WGPULimits limits = WGPU_LIMITS_INIT;
  std::string driver;
  WGPUAdapterType type = WGPUAdapterType_Unknown;
};

/// An instance limited to Vulkan, Metal and Direct3D 12, and its adapters: discrete GPUs first, software
/// last.
class Adapters {
 public:
  static Result<Adapters> open(std::shared_ptr<const Api> api, bool checked_shaders);
  Adapters(Adapters&& other) noexcept
      : api_(std::move(other.api_)),
        instance_(std::exchange(other.instance_, nullptr)),
        list_(std::exchange(other.list_, {})) {}
  Adapters& operator=(Adapters&&) = delete;
  ~Adapters();

  const std::vector<Adapter>& list() const { return list_; }
  Result<const Adapter*> find(std::string_view name) const;  // see DeviceOptions::name
  WGPUInstance instance() const { return instance_; }
  WGPUInstance take_instance() { return std::exchange(instance_, nullptr); }

 private:
  Adapters(std::shared_ptr<const Api> api, WGPUInstance instance)
      : api_(std::move(api)), instance_(instance) {}
  void add(WGPUAdapter handle);

  std::shared_ptr<const Api> api_;
  WGPUInstance instance_;
  std::vector<Adapter> list_;
};

bool has_subgroups(const Api& api, WGPUAdapter adapter);

}  // namespace doppler::gpu
