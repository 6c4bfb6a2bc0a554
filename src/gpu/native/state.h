#pragma once
// What a Device is made of: the library's objects, its caches, and the errors that callbacks have left.
#include <array>
#include <cstring>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "gpu/device.h"
#include "gpu/native/api.h"
#include "gpu/shader_bindings.h"

namespace doppler::gpu {

inline constexpr uint32_t kMaxParamsBytes = 256;     // one slot of a params arena
inline constexpr uint64_t kArenaBytes = 1ull << 20;  // 4,096 dispatches an arena
inline constexpr uint64_t kWritePiece = 4ull << 20;  // staged at a time by one write
inline constexpr uint64_t kMaxStagedBytes = 32ull
                                            << 20;   // written before we wait for the device to take them
inline constexpr uint64_t kReadPiece = 16ull << 20;  // largest readback buffer
inline constexpr size_t kMaxBindings = 16;
inline constexpr size_t kMaxBindGroups = 8192;  // cached; more than a plan has, so a full cache starts anew

struct Layout {
  WGPUBindGroupLayout group = nullptr;
  WGPUPipelineLayout pipeline = nullptr;
};

class Pipeline {
 public:
  std::string label;
  uint64_t source_hash = 0;
  std::vector<std::pair<std::string, double>> constants;
  std::vector<BindingKind> kinds;
  bool has_params = false;  // the last binding is the uniform one
  const Layout* layout = nullptr;
  WGPUComputePipeline handle = nullptr;
};

/// What a bind group binds; equal keys share one group. Unused entries are zero, so that bytes can be
/// compared.
struct BindGroupKey {
  struct Entry {
    WGPUBuffer buffer;
    uint64_t offset, size;
  };
  const Layout* layout = nullptr;
  uint64_t arena = 0;  // 1 + index of the params arena, 0 without params
  uint64_t count = 0;
  std::array<Entry, kMaxBindings> entries{};

  size_t bytes() const { return offsetof(BindGroupKey, entries) + count * sizeof(Entry); }
  bool operator==(const BindGroupKey& o) const {
    return count == o.count && std::memcmp(this, &o, bytes()) == 0;
  }
};

struct BindGroupHash {
  size_t operator()(const BindGroupKey& key) const {
    return std::hash<std::string_view>()({reinterpret_cast<const char*>(&key), key.bytes()});
  }
};

struct CommandEntry {
  const Pipeline* pipeline = nullptr;  // nullptr: a copy
  WGPUBindGroup group = nullptr;       // holds a reference
  uint32_t params_offset = 0;          // into its arena
  std::array<uint32_t, 3> workgroups{};
  WGPUBuffer from = nullptr, to = nullptr;  // hold references
  uint64_t from_offset = 0, to_offset = 0, bytes = 0;
};

struct CommandList {
  std::shared_ptr<DeviceState> device;
  std::string label;
  std::vector<CommandEntry> entries;
  std::vector<std::byte> params;  // slots of kMaxParamsBytes, arena after arena
  uint32_t dispatches = 0;
  std::optional<Error> error;  // the first
};

Error error_of(WGPUErrorType type, WGPUStringView message);

struct DeviceState {
  std::shared_ptr<const Api> api;
  Caps caps;
  bool checked_shaders = true;
  WGPUInstance instance = nullptr;
  WGPUDevice device = nullptr;
  WGPUQueue queue = nullptr;

  uint64_t allocated_bytes = 0;
  uint64_t staged_bytes = 0;              // written since the last wait
  std::map<std::string, Layout> layouts;  // by their kinds
  std::unordered_multimap<uint64_t, std::unique_ptr<Pipeline>> pipelines;
  std::unordered_map<BindGroupKey, WGPUBindGroup, BindGroupHash> bind_groups;
  std::vector<WGPUBuffer> arenas;
  std::map<uint64_t, std::vector<WGPUBuffer>> readback;  // spare, by size
  std::vector<std::unique_ptr<CommandList>> spare_lists;

  std::mutex callback_mutex;  // the library may report from another thread
  std::optional<std::string> lost;
  std::optional<Error> uncaptured;

  DeviceState() = default;
  DeviceState(const DeviceState&) = delete;
  DeviceState& operator=(const DeviceState&) = delete;
  ~DeviceState();

  /// The error that stands in the way of the next call: the device's loss, or what a callback reported.
  Result<void> check();

  /// Lets callbacks run. `wait`: until everything submitted is done (only with wgpuDevicePoll).
  void pump(bool wait);
  Result<void> wait_idle();

  /// Runs `make` with error scopes around it and returns the error they caught, if any.
  std::optional<Error> scoped(const std::function<void()>& make);

  Result<WGPUBuffer> make_buffer(uint64_t bytes, WGPUBufferUsage usage, std::string_view label);
  Result<const Layout*> layout_for(const std::vector<BindingKind>& kinds);
  Result<WGPUBindGroup> bind_group(const BindGroupKey& key, std::string_view label);
  void forget_bind_groups_of(WGPUBuffer buffer);
  void clear_bind_groups();
  void recycle(std::unique_ptr<CommandList> list);  // gives up its references

  /// Encodes a list, or its part [first, last), into a command buffer. `pass_times`: a query set that gets
  /// the start and end of each dispatch, each in a pass of its own.
  Result<WGPUCommandBuffer> encode(const CommandList& list, size_t first, size_t last,
                                   WGPUQuerySet pass_times, WGPUBuffer resolved);
  Result<void> write_params(const CommandList& list);
  Result<void> read_back(WGPUBuffer from, uint64_t offset, std::span<std::byte> out);  // 4-byte aligned
};

}  // namespace doppler::gpu
