#pragma once
// Which device runs a model, and why.
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "gpu/device.h"

namespace doppler {

struct DeviceChoice {
  bool gpu = false;
  std::string adapter;         // for gpu::DeviceOptions::name
  std::string reason;          // "auto: no hardware GPU among 1 adapter (llvmpipe is software), so the CPU"
  bool may_fall_back = false;  // auto: if the GPU cannot be used after all, the CPU is
};

/// "auto" takes a hardware GPU (a discrete one first), else the CPU; "gpu" takes one or fails; "cpu" the CPU;
/// anything else names an adapter or a software driver and is left to the GPU layer. Pure: `adapters` is what
/// list_adapters gave, and is only looked at for "auto" and "gpu".
Result<DeviceChoice> choose_device(std::string_view name,
                                   const Result<std::vector<gpu::AdapterInfo>>& adapters);

/// The same with this machine's adapters.
Result<DeviceChoice> choose_device(std::string_view name);

}  // namespace doppler
