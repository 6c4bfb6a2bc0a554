// Shader modules, layouts, pipelines and bind groups, each made once.
#include <algorithm>
#include <chrono>

#include "base/log.h"
#include "gpu/native/state.h"

namespace doppler::gpu {
namespace {

// The directives this library wants. One line, so that compilers' messages are off by one line at most.
std::string shader_head(const PipelineDesc& desc, bool dawn) {
  std::string head;
  if (desc.uses_subgroups && dawn) head += "diagnostic(off, subgroup_uniformity); enable subgroups; ";
  if (desc.uses_f16) head += "enable f16; ";
  return head.empty() ? head : head + "\n";
}

uint64_t hash_of(const PipelineDesc& desc) {
  uint64_t hash = std::hash<std::string_view>()(desc.source);
  hash = hash * 31 + std::hash<std::string_view>()(desc.label);
  for (const auto& [name, value] : desc.constants)
    hash = (hash * 31 + std::hash<std::string>()(name)) * 31 + std::hash<double>()(value);
  return hash;
}

WGPUShaderModule make_module(const DeviceState& state, const PipelineDesc& desc, const std::string& code) {
  WGPUShaderSourceWGSL source = WGPU_SHADER_SOURCE_WGSL_INIT;
  source.code = view(code);
  WGPUShaderModuleDescriptor module = WGPU_SHADER_MODULE_DESCRIPTOR_INIT;
  module.nextInChain = &source.chain;
  module.label = view(desc.label);
  if (!state.checked_shaders && state.api->DeviceCreateShaderModuleTrusted != nullptr)
    return state.api->DeviceCreateShaderModuleTrusted(state.device, &module, WGPUShaderRuntimeChecks_None);
  return state.api->DeviceCreateShaderModule(state.device, &module);
}

}  // namespace

Result<const Layout*> DeviceState::layout_for(const std::vector<BindingKind>& kinds) {
  std::string signature;
  for (BindingKind kind : kinds)
    signature += kind == BindingKind::kUniform ? 'u' : kind == BindingKind::kReadStorage ? 'r' : 'w';
  if (const auto it = layouts.find(signature); it != layouts.end()) return &it->second;
  std::vector<WGPUBindGroupLayoutEntry> entries(kinds.size());
  for (size_t i = 0; i < kinds.size(); ++i) {
    entries[i] = WGPU_BIND_GROUP_LAYOUT_ENTRY_INIT;
    entries[i].binding = static_cast<uint32_t>(i);
    entries[i].visibility = WGPUShaderStage_Compute;
    entries[i].buffer.type = kinds[i] == BindingKind::kUniform       ? WGPUBufferBindingType_Uniform
                             : kinds[i] == BindingKind::kReadStorage ? WGPUBufferBindingType_ReadOnlyStorage
                                                                     : WGPUBufferBindingType_Storage;
    entries[i].buffer.hasDynamicOffset = kinds[i] == BindingKind::kUniform;
  }
  Layout layout;
  const std::string label = "layout/" + signature;
  const std::optional<Error> error = scoped([&] {
    WGPUBindGroupLayoutDescriptor group = WGPU_BIND_GROUP_LAYOUT_DESCRIPTOR_INIT;
    group.label = view(label);
    group.entryCount = entries.size();
    group.entries = entries.data();
    layout.group = api->DeviceCreateBindGroupLayout(device, &group);
    WGPUPipelineLayoutDescriptor pipeline = WGPU_PIPELINE_LAYOUT_DESCRIPTOR_INIT;
    pipeline.label = view(label);
    pipeline.bindGroupLayoutCount = 1;
    pipeline.bindGroupLayouts = &layout.group;
    layout.pipeline = api->DeviceCreatePipelineLayout(device, &pipeline);
  });
  if (error) {
    if (layout.pipeline != nullptr) api->PipelineLayoutRelease(layout.pipeline);
    if (layout.group != nullptr) api->BindGroupLayoutRelease(layout.group);
    return fail(error->code, "[gpu] {} ({} bindings): {}", label, kinds.size(), error->message);
  }
  return &layouts.emplace(signature, layout).first->second;
}

Result<const Pipeline*> Device::pipeline(const PipelineDesc& desc) {
  DeviceState& state = *state_;
  DOPPLER_CHECK_OK(state.check());
  const uint64_t hash = hash_of(desc);
  const auto [first, last] = state.pipelines.equal_range(hash);
  for (auto it = first; it != last; ++it)
    if (it->second->label == desc.label && it->second->constants == desc.constants) return it->second.get();
  if (desc.uses_f16 && !state.caps.f16)
    return fail(ErrorCode::kUnsupported, "[gpu] {} wants shader-f16, {} has none", desc.label,
                state.caps.adapter);
  if (desc.uses_subgroups && !state.caps.subgroups)
    return fail(ErrorCode::kUnsupported, "[gpu] {} wants subgroups, {} has none", desc.label,
                state.caps.adapter);

  auto made = std::make_unique<Pipeline>();
  made->label = desc.label;
  made->constants = desc.constants;
  Result<std::vector<BindingKind>> kinds = shader_bindings(desc.source);
  if (!kinds) return fail(ErrorCode::kGpu, "[gpu] {}: {}", desc.label, kinds.error().message);
  made->kinds = std::move(*kinds);
  made->has_params = !made->kinds.empty() && made->kinds.back() == BindingKind::kUniform;
  if (std::count(made->kinds.begin(), made->kinds.end(), BindingKind::kUniform) > (made->has_params ? 1 : 0))
    return fail(ErrorCode::kGpu, "[gpu] {}: a uniform binding was wanted last only", desc.label);
  if (made->kinds.size() - made->has_params > state.caps.max_storage_buffers)
    return fail(ErrorCode::kUnsupported, "[gpu] {} binds {} storage buffers, {} allows {}", desc.label,
                made->kinds.size() - made->has_params, state.caps.adapter, state.caps.max_storage_buffers);
  DOPPLER_TRY(made->layout, state.layout_for(made->kinds));

  const auto start = std::chrono::steady_clock::now();
  const std::string code = shader_head(desc, state.caps.dawn) + std::string(desc.source);
  WGPUShaderModule module = nullptr;
  std::optional<Error> error = state.scoped([&] { module = make_module(state, desc, code); });
  if (!error) {
    std::vector<WGPUConstantEntry> constants;
    for (const auto& [name, value] : desc.constants) {
      WGPUConstantEntry& entry = constants.emplace_back();
      entry = WGPU_CONSTANT_ENTRY_INIT;
      entry.key = view(name);
      entry.value = value;
    }
    WGPUComputePipelineDescriptor pipeline = WGPU_COMPUTE_PIPELINE_DESCRIPTOR_INIT;
    pipeline.label = view(desc.label);
    pipeline.layout = made->layout->pipeline;
    pipeline.compute.module = module;
    pipeline.compute.entryPoint = view("main");
    pipeline.compute.constantCount = constants.size();
    pipeline.compute.constants = constants.data();
    error =
        state.scoped([&] { made->handle = state.api->DeviceCreateComputePipeline(state.device, &pipeline); });
  }
  if (module != nullptr) state.api->ShaderModuleRelease(module);
  if (error || made->handle == nullptr) {
    if (made->handle != nullptr) state.api->ComputePipelineRelease(made->handle);
    DOPPLER_CHECK_OK(state.check());
    return fail(error ? error->code : ErrorCode::kGpu, "[gpu] shader {}: {}", desc.label,
                error ? error->message : "no pipeline came back");
  }
  log(LogLevel::kDebug, "[gpu] compiled {} in {:.0f} ms", desc.label,
      std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - start).count());
  return state.pipelines.emplace(hash, std::move(made))->second.get();
}

Result<WGPUBindGroup> DeviceState::bind_group(const BindGroupKey& key, std::string_view label) {
  if (const auto it = bind_groups.find(key); it != bind_groups.end()) return it->second;
  if (bind_groups.size() >= kMaxBindGroups) clear_bind_groups();
  std::array<WGPUBindGroupEntry, kMaxBindings + 1> entries;
  size_t count = 0;
  for (; count < key.count; ++count) {
    entries[count] = WGPU_BIND_GROUP_ENTRY_INIT;
    entries[count].binding = static_cast<uint32_t>(count);
    entries[count].buffer = key.entries[count].buffer;
    entries[count].offset = key.entries[count].offset;
    entries[count].size = key.entries[count].size;
  }
  if (key.arena > 0) {
    while (arenas.size() < key.arena) {
      DOPPLER_TRY(WGPUBuffer arena,
                  make_buffer(kArenaBytes, WGPUBufferUsage_Uniform | WGPUBufferUsage_CopyDst, "params"));
      arenas.push_back(arena);
    }
    entries[count] = WGPU_BIND_GROUP_ENTRY_INIT;
    entries[count].binding = static_cast<uint32_t>(count);
    entries[count].buffer = arenas[key.arena - 1];
    entries[count].size = kMaxParamsBytes;
    ++count;
  }
  WGPUBindGroupDescriptor desc = WGPU_BIND_GROUP_DESCRIPTOR_INIT;
  desc.label = view(label);
  desc.layout = key.layout->group;
  desc.entryCount = count;
  desc.entries = entries.data();
  WGPUBindGroup group = nullptr;
  const std::optional<Error> error = scoped([&] { group = api->DeviceCreateBindGroup(device, &desc); });
  if (error || group == nullptr) {
    if (group != nullptr) api->BindGroupRelease(group);
    return fail(error ? error->code : ErrorCode::kGpu, "[gpu] bindings of {}: {}", label,
                error ? error->message : "no bind group came back");
  }
  bind_groups.emplace(key, group);
  return group;
}

void DeviceState::forget_bind_groups_of(WGPUBuffer buffer) {
  std::erase_if(bind_groups, [&](const auto& item) {
    for (size_t i = 0; i < item.first.count; ++i)
      if (item.first.entries[i].buffer == buffer) {
        api->BindGroupRelease(item.second);
        return true;
      }
    return false;
  });
}

void DeviceState::clear_bind_groups() {
  for (const auto& [key, group] : bind_groups) api->BindGroupRelease(group);
  bind_groups.clear();
}

}  // namespace doppler::gpu
