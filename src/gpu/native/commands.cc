// Recording, encoding and submitting command lists.
#include <algorithm>
#include <utility>

#include "gpu/native/state.h"

namespace doppler::gpu {
namespace {

constexpr uint32_t kSlotsPerArena = static_cast<uint32_t>(kArenaBytes / kMaxParamsBytes);

// Fills the key's entries with the ranges of a dispatch, or says what is wrong with them.
Result<void> check_bindings(const DeviceState& state, const Pipeline& pipeline,
                            std::span<const Binding> bindings, std::span<const void* const> handles,
                            size_t params_bytes, BindGroupKey& key) {
  const size_t storage = pipeline.kinds.size() - (pipeline.has_params ? 1 : 0);
  if (bindings.size() != storage)
    return fail(ErrorCode::kGpu, "[gpu] {} wants {} storage bindings, got {}", pipeline.label, storage,
                bindings.size());
  if ((params_bytes > 0) != pipeline.has_params || params_bytes > kMaxParamsBytes)
    return fail(ErrorCode::kGpu, "[gpu] {} wants {} params of at most {} bytes, got {}", pipeline.label,
                pipeline.has_params ? "some" : "no", kMaxParamsBytes, params_bytes);
  key.layout = pipeline.layout;
  key.count = storage;
  for (size_t i = 0; i < storage; ++i) {
    const Binding& b = bindings[i];
    if (handles[i] == nullptr)
      return fail(ErrorCode::kGpu, "[gpu] binding {} of {} has no buffer", i, pipeline.label);
    const uint64_t total = b.buffer->bytes();
    if (b.offset > total || b.size > total - b.offset ||
        b.offset % state.caps.min_storage_offset_alignment != 0)
      return fail(ErrorCode::kGpu,
                  "[gpu] binding {} of {}: {} bytes at {} were wanted, the buffer has {} (offsets are "
                  "multiples of {})",
                  i, pipeline.label, b.size, b.offset, total, state.caps.min_storage_offset_alignment);
    const uint64_t size =
        b.size == 0 ? total - b.offset : std::min<uint64_t>((b.size + 3) & ~3ull, total - b.offset);
    if (size == 0 || size > state.caps.max_binding_bytes)
      return fail(ErrorCode::kGpu, "[gpu] binding {} of {} has {} bytes, {} allows 4 to {}; split it by rows",
                  i, pipeline.label, size, state.caps.adapter, state.caps.max_binding_bytes);
    key.entries[i] = {static_cast<WGPUBuffer>(const_cast<void*>(handles[i])), b.offset, size};
  }
  return {};
}

}  // namespace

Commands::Commands() = default;
Commands::Commands(Commands&&) noexcept = default;

Commands& Commands::operator=(Commands&& other) noexcept {
  std::swap(list_, other.list_);
  return *this;
}

Commands::~Commands() {
  if (list_ == nullptr) return;
  const std::shared_ptr<DeviceState> device = list_->device;
  device->recycle(std::move(list_));
}

uint32_t Commands::dispatch_count() const { return list_ == nullptr ? 0 : list_->dispatches; }

void Commands::dispatch(const Pipeline& pipeline, std::span<const Binding> bindings,
                        std::span<const std::byte> params, std::array<uint32_t, 3> workgroups) {
  if (list_ == nullptr || list_->error) return;
  if (workgroups[0] == 0 || workgroups[1] == 0 || workgroups[2] == 0) return;
  CommandList& list = *list_;
  DeviceState& state = *list.device;
  const uint32_t most = std::max({workgroups[0], workgroups[1], workgroups[2]});
  if (most > state.caps.max_workgroups_per_dimension) {
    list.error =
        Error{ErrorCode::kGpu,
              fmt::format("[gpu] {} wants {} workgroups in one dimension, {} allows {}", pipeline.label, most,
                          state.caps.adapter, state.caps.max_workgroups_per_dimension)};
    return;
  }
  std::array<const void*, kMaxBindings> handles{};
  for (size_t i = 0; i < std::min(bindings.size(), kMaxBindings); ++i)
    handles[i] = bindings[i].buffer == nullptr ? nullptr : bindings[i].buffer->handle_;
  BindGroupKey key;
  CommandEntry entry;
  entry.pipeline = &pipeline;
  entry.workgroups = workgroups;
  Result<void> ok = check_bindings(state, pipeline, bindings, handles, params.size(), key);
  if (ok && pipeline.has_params) {
    const size_t slot = list.params.size() / kMaxParamsBytes;
    key.arena = slot / kSlotsPerArena + 1;
    entry.params_offset = static_cast<uint32_t>(slot % kSlotsPerArena) * kMaxParamsBytes;
    list.params.resize(list.params.size() + kMaxParamsBytes);
    std::memcpy(list.params.data() + slot * kMaxParamsBytes, params.data(), params.size());
  }
  if (ok) ok = state.check();
  Result<WGPUBindGroup> group = ok ? state.bind_group(key, pipeline.label) : forward_error(ok);
  if (!group) {
    list.error = std::move(group.error());
    return;
  }
  entry.group = *group;
  state.api->BindGroupAddRef(entry.group);
  list.entries.push_back(entry);
  ++list.dispatches;
}

void Commands::copy(const Buffer& from, uint64_t from_offset, const Buffer& to, uint64_t to_offset,
                    uint64_t bytes) {
  if (list_ == nullptr || list_->error || bytes == 0) return;
  const bool inside = from && to && from_offset <= from.bytes() && bytes <= from.bytes() - from_offset &&
                      to_offset <= to.bytes() && bytes <= to.bytes() - to_offset;
  if (!inside || from.handle_ == to.handle_ || (from_offset | to_offset | bytes) % 4 != 0) {
    list_->error =
        Error{ErrorCode::kGpu,
              fmt::format("[gpu] {}: a copy of {} bytes from {} of {} to {} of {} was wanted; it must lie "
                          "inside two buffers, in multiples of 4",
                          list_->label, bytes, from_offset, from.bytes(), to_offset, to.bytes())};
    return;
  }
  CommandEntry entry;
  entry.from = static_cast<WGPUBuffer>(from.handle_);
  entry.to = static_cast<WGPUBuffer>(to.handle_);
  entry.from_offset = from_offset;
  entry.to_offset = to_offset;
  entry.bytes = bytes;
  list_->device->api->BufferAddRef(entry.from);
  list_->device->api->BufferAddRef(entry.to);
  list_->entries.push_back(entry);
}

void DeviceState::recycle(std::unique_ptr<CommandList> list) {
  for (const CommandEntry& entry : list->entries) {
    if (entry.group != nullptr) api->BindGroupRelease(entry.group);
    if (entry.from != nullptr) api->BufferRelease(entry.from);
    if (entry.to != nullptr) api->BufferRelease(entry.to);
  }
  list->entries.clear();
  list->params.clear();
  list->error.reset();
  list->dispatches = 0;
  list->device.reset();  // a spare list must not keep the device alive
  if (spare_lists.size() < 8) spare_lists.push_back(std::move(list));
}

Commands Device::begin(std::string_view label) {
  std::unique_ptr<CommandList> list;
  if (state_->spare_lists.empty()) {
    list = std::make_unique<CommandList>();
  } else {
    list = std::move(state_->spare_lists.back());
    state_->spare_lists.pop_back();
  }
  list->device = state_;
  list->label = label;
  Commands commands;
  commands.list_ = std::move(list);
  return commands;
}

Result<WGPUCommandBuffer> DeviceState::encode(const CommandList& list, size_t first, size_t last,
                                              WGPUQuerySet pass_times, WGPUBuffer resolved) {
  WGPUCommandBuffer commands = nullptr;
  const std::optional<Error> error = scoped([&] {
    WGPUCommandEncoderDescriptor encoder_desc = WGPU_COMMAND_ENCODER_DESCRIPTOR_INIT;
    encoder_desc.label = view(list.label);
    WGPUCommandEncoder encoder = api->DeviceCreateCommandEncoder(device, &encoder_desc);
    WGPUComputePassEncoder pass = nullptr;
    const Pipeline* bound = nullptr;
    uint32_t times = 0;
    const auto end_pass = [&] {
      if (pass == nullptr) return;
      api->ComputePassEncoderEnd(pass);
      api->ComputePassEncoderRelease(pass);
      pass = nullptr;
      bound = nullptr;
    };
    for (size_t i = first; i < last; ++i) {
      const CommandEntry& entry = list.entries[i];
      if (entry.pipeline == nullptr || pass_times != nullptr) end_pass();
      if (entry.pipeline == nullptr) {
        api->CommandEncoderCopyBufferToBuffer(encoder, entry.from, entry.from_offset, entry.to,
                                              entry.to_offset, entry.bytes);
        continue;
      }
      if (pass == nullptr) {
        WGPUPassTimestampWrites writes = WGPU_PASS_TIMESTAMP_WRITES_INIT;
        writes.querySet = pass_times;
        writes.beginningOfPassWriteIndex = times;
        writes.endOfPassWriteIndex = times + 1;
        WGPUComputePassDescriptor pass_desc = WGPU_COMPUTE_PASS_DESCRIPTOR_INIT;
        pass_desc.label = pass_times != nullptr ? view(entry.pipeline->label) : view(list.label);
        if (pass_times != nullptr) pass_desc.timestampWrites = &writes, times += 2;
        pass = api->CommandEncoderBeginComputePass(encoder, &pass_desc);
      }
      if (bound != entry.pipeline) api->ComputePassEncoderSetPipeline(pass, entry.pipeline->handle);
      bound = entry.pipeline;
      api->ComputePassEncoderSetBindGroup(pass, 0, entry.group, entry.pipeline->has_params ? 1 : 0,
                                          &entry.params_offset);
      api->ComputePassEncoderDispatchWorkgroups(pass, entry.workgroups[0], entry.workgroups[1],
                                                entry.workgroups[2]);
    }
    end_pass();
    if (pass_times != nullptr) api->CommandEncoderResolveQuerySet(encoder, pass_times, 0, times, resolved, 0);
    WGPUCommandBufferDescriptor desc = WGPU_COMMAND_BUFFER_DESCRIPTOR_INIT;
    desc.label = view(list.label);
    commands = api->CommandEncoderFinish(encoder, &desc);
    api->CommandEncoderRelease(encoder);
  });
  if (!error && commands != nullptr) return commands;
  // Submitting a buffer whose encoding failed ends the process in wgpu-native: it goes no further.
  if (commands != nullptr) api->CommandBufferRelease(commands);
  DOPPLER_CHECK_OK(check());
  return fail(error ? error->code : ErrorCode::kGpu, "[gpu] {}: {}", list.label,
              error ? error->message : "no command buffer came back");
}

Result<void> DeviceState::write_params(const CommandList& list) {
  for (size_t at = 0, arena = 0; at < list.params.size(); at += kArenaBytes, ++arena)
    api->QueueWriteBuffer(queue, arenas[arena], 0, list.params.data() + at,
                          std::min<size_t>(kArenaBytes, list.params.size() - at));
  return {};
}

Prepared::Prepared() = default;

Prepared::Prepared(Prepared&& other) noexcept
    : list_(std::move(other.list_)), buffer_(std::exchange(other.buffer_, nullptr)) {}

Prepared& Prepared::operator=(Prepared&& other) noexcept {
  std::swap(list_, other.list_);
  std::swap(buffer_, other.buffer_);
  return *this;
}

Prepared::~Prepared() {
  if (list_ == nullptr) return;
  const std::shared_ptr<DeviceState> device = list_->device;
  if (buffer_ != nullptr) device->api->CommandBufferRelease(static_cast<WGPUCommandBuffer>(buffer_));
  device->recycle(std::move(list_));
}

Result<Prepared> Device::prepare(Commands&& commands) {
  Commands taken = std::move(commands);
  DOPPLER_CHECK_OK(state_->check());
  Prepared prepared;
  if (taken.list_ == nullptr) return prepared;
  if (taken.list_->error) return tl::unexpected<Error>(*taken.list_->error);
  if (taken.list_->entries.empty()) return prepared;
  DOPPLER_TRY(prepared.buffer_,
              state_->encode(*taken.list_, 0, taken.list_->entries.size(), nullptr, nullptr));
  prepared.list_ = std::move(taken.list_);
  return prepared;
}

Result<void> Device::submit(Prepared&& prepared) {
  const Prepared taken = std::move(prepared);
  DOPPLER_CHECK_OK(state_->check());
  if (taken.buffer_ == nullptr) return {};
  const auto buffer = static_cast<WGPUCommandBuffer>(taken.buffer_);
  DOPPLER_CHECK_OK(state_->write_params(*taken.list_));
  state_->api->QueueSubmit(state_->queue, 1, &buffer);
  return {};
}

Result<void> Device::submit(Commands&& commands) {
  DOPPLER_TRY(Prepared prepared, prepare(std::move(commands)));
  return submit(std::move(prepared));
}

}  // namespace doppler::gpu
