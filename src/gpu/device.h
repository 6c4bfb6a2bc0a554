#pragma once
// One WebGPU device: buffers, pipelines, command lists, readback. Errors come back as values; nothing aborts.
// Only gpu/native/ sees webgpu.h; this header is what the rest of the engine uses.
#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace doppler::gpu {

/// What an adapter offers, as far as choosing kernels needs it. Pure data: planners are tested without a GPU.
struct Caps {
  std::string adapter;          // "llvmpipe (LLVM 15.0.6, 256 bits)"
  std::string backend;          // "Vulkan", "Metal", "D3D12"
  std::string library;          // path of the WebGPU library in use
  bool hardware = false;        // false: a software driver
  bool unified_memory = false;  // an integrated GPU or a software driver
  bool f16 = false;
  bool subgroups = false;
  bool timestamps = false;
  bool dawn = false;           // Dawn's dialect: `enable subgroups;` wanted, wgpuInstanceProcessEvents polls
  uint32_t subgroup_size = 0;  // measured with a probe kernel; 0 without subgroups
  uint32_t max_workgroup_invocations = 256;
  uint32_t max_workgroup_size_x = 256;
  uint32_t max_workgroups_per_dimension = 65535;
  uint32_t max_workgroup_storage_bytes = 16384;
  uint32_t max_storage_buffers = 8;  // per shader stage
  uint32_t min_storage_offset_alignment = 256;
  uint32_t min_uniform_offset_alignment = 256;
  uint64_t max_buffer_bytes = 256ull << 20;
  uint64_t max_binding_bytes = 128ull << 20;
};

struct DeviceOptions {
  std::string name = {};     // "", an index, "lavapipe", "swiftshader", or a substring of the adapter's name
  std::string library = {};  // "": DOPPLER_WEBGPU, beside the binary, the build's copy (wgpu-native)
  bool disable_f16 = false;  // for tests: pretend the adapter lacks it
  bool disable_subgroups = false;
  bool checked_shaders = true;  // false: our own kernels without bounds checks (trusted modules)
};

class Device;
struct DeviceState;  // gpu/native/state.h, as CommandList
struct CommandList;

/// A GPU buffer. Move-only; freed when it goes. `bytes()` is what was asked for, rounded up to 4. New buffers
/// read as zeros. It may go while a recorded or submitted list uses it, and may outlive its Device.
class Buffer {
 public:
  Buffer() = default;
  Buffer(Buffer&&) noexcept;
  Buffer& operator=(Buffer&&) noexcept;
  ~Buffer();
  uint64_t bytes() const { return bytes_; }
  explicit operator bool() const { return handle_ != nullptr; }

 private:
  friend class Device;
  friend class Commands;
  std::shared_ptr<DeviceState> device_;
  void* handle_ = nullptr;  // WGPUBuffer
  uint64_t bytes_ = 0;
};

enum class BufferUse { kStorage, kUniform };

/// A compute pipeline and its one bind group layout. Owned by the device's cache; pointers stay valid.
class Pipeline;

struct PipelineDesc {
  std::string label;        // "rms_norm/vec4/wg64"; also the name in traces and errors
  std::string_view source;  // WGSL after the preprocessor, without `enable` lines
  bool uses_f16 = false;    // the host writes the enable lines this library wants
  bool uses_subgroups = false;
  std::vector<std::pair<std::string, double>> constants = {};  // pipeline-overridable constants
};

/// A buffer range for one @binding, in binding order 0, 1, 2, …; size 0 means to the end.
struct Binding {
  const Buffer* buffer;
  uint64_t offset = 0;
  uint64_t size = 0;
};

/// A list of dispatches and copies: `record_x(Commands&, …)` of each kernel adds to it, submit() encodes it.
/// What is wrong with an entry (a binding over the limit, a buffer that is not there) comes back from
/// submit(), which then runs nothing of the list. A dispatch sees everything that the ones before it wrote.
class Commands {
 public:
  Commands();  // empty and not recording; Device::begin makes one that is
  Commands(Commands&&) noexcept;
  Commands& operator=(Commands&&) noexcept;
  ~Commands();

  /// Params (at most 256 bytes) are copied and go into the uniform binding that follows the storage bindings:
  /// `@group(0) @binding(bindings.size()) var<uniform> p: Params;`. Empty params: no such binding.
  /// One buffer must not be bound both as `read` and as `read_write` in one dispatch (a WebGPU rule);
  /// read_write twice, at ranges that do not overlap, is fine. Zero workgroups: nothing runs.
  void dispatch(const Pipeline& pipeline, std::span<const Binding> bindings,
                std::span<const std::byte> params, std::array<uint32_t, 3> workgroups);
  /// Offsets and bytes are multiples of 4; the buffers differ.
  void copy(const Buffer& from, uint64_t from_offset, const Buffer& to, uint64_t to_offset, uint64_t bytes);
  uint32_t dispatch_count() const;

 private:
  friend class Device;
  std::unique_ptr<CommandList> list_;
};

/// A list that is encoded already and waits for its submit(). It may go unsubmitted.
class Prepared {
 public:
  Prepared();
  Prepared(Prepared&&) noexcept;
  Prepared& operator=(Prepared&&) noexcept;
  ~Prepared();

 private:
  friend class Device;
  std::unique_ptr<CommandList> list_;
  void* buffer_ = nullptr;  // WGPUCommandBuffer
};

/// Time of one dispatch, from timestamp queries.
struct DispatchTime {
  std::string label;
  double microseconds;
};

/// Used from one thread at a time. Once the device is lost every call answers kDeviceLost: create another.
class Device {
 public:
  /// Errors: kNotFound (no library, no adapter of that name, no Vulkan loader), kGpu (the library refused).
  static Result<std::unique_ptr<Device>> create(const DeviceOptions& options);
  ~Device();

  const Caps& caps() const;
  bool lost() const;

  /// kOutOfMemory when the adapter's limit or its memory does not allow it.
  Result<Buffer> create_buffer(uint64_t bytes, std::string_view label, BufferUse use = BufferUse::kStorage);
  uint64_t allocated_bytes() const;  // all live buffers

  /// Compiles once per (label, source, constants); later calls return the same pipeline. A shader error
  /// carries the compiler's own message. The entry point is `main`.
  Result<const Pipeline*> pipeline(const PipelineDesc& desc);

  /// Queues bytes to be in `buffer` before any later submit. Large writes are cut into staged pieces so that
  /// host memory stays bounded. `offset` is a multiple of 4; a length that is not is completed with zero
  /// bytes.
  Result<void> write(const Buffer& buffer, uint64_t offset, std::span<const std::byte> bytes);

  Commands begin(std::string_view label);
  /// Runs the list after everything submitted before; returns at once.
  Result<void> submit(Commands&& commands);
  /// Encodes the list now, for a later submit(): work for the processor while the device is busy.
  Result<Prepared> prepare(Commands&& commands);
  Result<void> submit(Prepared&& prepared);
  Result<void> wait();  // until everything submitted is done
  Result<void> read(const Buffer& buffer, uint64_t offset, std::span<std::byte> out);  // waits

  /// As submit, waits, and gives each dispatch's time. Needs caps().timestamps.
  Result<std::vector<DispatchTime>> submit_timed(Commands&& commands);

  /// For tests: makes the device lost as a driver reset would.
  void destroy_for_test();

  DeviceState& state() { return *state_; }

 private:
  Device() = default;
  std::shared_ptr<DeviceState> state_;
};

/// All adapters of the library, hardware and software, in a stable order (their index is a DeviceOptions
/// name).
struct AdapterInfo {
  Caps caps;
  std::string driver;  // driver description
};
Result<std::vector<AdapterInfo>> list_adapters(const std::string& library);

/// Where Vulkan's description of a software driver ("lavapipe", "swiftshader") lies; empty: not installed.
std::string software_driver_file(std::string_view name);

/// Typed helpers over the byte interface.
template <class T>
std::span<const std::byte> as_params(const T& params) {
  return std::as_bytes(std::span(&params, 1));
}

}  // namespace doppler::gpu
