#include "engine/device_choice.h"

#include <fmt/core.h>
#include <fmt/ranges.h>

#include <optional>

namespace doppler {
namespace {

std::optional<size_t> best_hardware(const std::vector<gpu::AdapterInfo>& adapters) {
  std::optional<size_t> best;
  for (size_t i = 0; i < adapters.size(); ++i) {
    if (!adapters[i].caps.hardware) continue;
    if (!best || (adapters[*best].caps.unified_memory && !adapters[i].caps.unified_memory)) best = i;
  }
  return best;
}

/// Why there is no hardware GPU to take.
std::string why_none(const Result<std::vector<gpu::AdapterInfo>>& adapters) {
  if (!adapters) return "no GPU can be reached: " + adapters.error().message;
  if (adapters->empty()) return "WebGPU finds no adapter";
  std::vector<std::string> names;
  for (const gpu::AdapterInfo& adapter : *adapters) names.push_back(adapter.caps.adapter);
  return fmt::format("no hardware GPU, only software: {}", fmt::join(names, ", "));
}

}  // namespace

Result<DeviceChoice> choose_device(std::string_view name,
                                   const Result<std::vector<gpu::AdapterInfo>>& adapters) {
  if (name.empty())
    return fail(ErrorCode::kBadInput,
                "[device] auto, cpu, gpu or an adapter's name wanted, got an empty one");
  if (name == "cpu") return DeviceChoice{false, "", "asked for the CPU", false};
  if (name != "auto" && name != "gpu")
    return DeviceChoice{true, std::string(name), fmt::format("asked for \"{}\"", name), false};
  const auto index = adapters ? best_hardware(*adapters) : std::nullopt;
  if (index)
    return DeviceChoice{true, fmt::format("{}", *index),
                        fmt::format("{}: {} is a hardware GPU", name, (*adapters)[*index].caps.adapter),
                        name == "auto"};
  if (name == "gpu")
    return fail(ErrorCode::kNotFound,
                "[device] a hardware GPU wanted, {}; use --device cpu, or lavapipe for software Vulkan",
                why_none(adapters));
  return DeviceChoice{false, "", fmt::format("auto: {}; so the CPU", why_none(adapters)), false};
}

Result<DeviceChoice> choose_device(std::string_view name) {
  // Looking for adapters loads the Vulkan drivers: only where the answer needs them.
  if (name != "auto" && name != "gpu") return choose_device(name, std::vector<gpu::AdapterInfo>());
  return choose_device(name, gpu::list_adapters(""));
}

}  // namespace doppler
