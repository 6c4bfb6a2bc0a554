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
  std::string adapter;            // "llvmpipe (LLVM 15.0.6, 256 bits)"
  std::string backend;            // "Vulkan", "Metal", "D3D12"
  std::string library;            // path of the WebGPU library in use
  bool hardware = false;          // false: a software driver
  bool unified_memory = false;    // an integrated GPU or a software driver
  bool f16 = false;
  bool subgroups = false;
  bool timestamps = false;
  bool dawn = false;              // Dawn's dialect: `enable subgroups;` wanted, wgpuInstanceProcessEvents polls
  uint32_t subgroup_size = 0;     // measured with a probe kernel; 0 without subgroups
  uint32_t max_workgroup_invocations = 256;
  uint32_t max_workgroup_size_x = 256;
  uint32_t max_workgroups_per_dimension = 65535;
  uint32_t max_workgroup_storage_bytes = 16384;
  uint32_t max_storage_buffers = 8;        // per shader stage
  uint32_t min_storage_offset_alignment = 256;
  uint32_t min_uniform_offset_alignment = 256;
  uint64_t max_buffer_bytes = 256ull << 20;
  uint64_t max_binding_bytes = 128ull << 20;
};

struct DeviceOptions {
  std::string name;          // "", an index, "lavapipe", "swiftshader", or a substring of the adapter's name
  std::string library;       // "": DOPPLER_WEBGPU, beside the binary, the build's copy (wgpu-native)
  bool disable_f16 = false;        // for tests: pretend the adapter lacks it
  bool disable_subgroups = false;
  bool checked_shaders = true;     // false: our own kernels without bounds checks (wgpu-native's trusted modules)
};

class Device;

/// A GPU buffer. Move-only; freed when it goes. `bytes()` is what was asked for, rounded up to 4.
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
  Device* device_ = nullptr;
  void* handle_ = nullptr;  // WGPUBuffer
  uint64_t bytes_ = 0;
};

enum class BufferUse { kStorage, kUniform };

/// A compute pipeline and its one bind group layout. Owned by the device's cache; pointers stay valid.
class Pipeline;

struct PipelineDesc {
  std::string label;                   // "rms_norm/vec4/wg64"; also the name in traces and errors
  std::string_view source;             // WGSL after the preprocessor, without `enable` lines
  bool uses_f16 = false;               // the host writes the enable lines this library wants
  bool uses_subgroups = false;
  std::vector<std::pair<std::string, double>> constants;  // pipeline-overridable constants
};

/// A buffer range for one @binding, in binding order 0, 1, 2, …; size 0 means to the end.
struct Binding {
  const Buffer* buffer;
  uint64_t offset = 0;
  uint64_t size = 0;
};

/// A list of dispatches and copies, encoded as they are recorded: `record_x(Commands&, …)` of each kernel adds to it.
class Commands {
 public:
  Commands(Commands&&) noexcept;
  Commands& operator=(Commands&&) noexcept;
  ~Commands();

  /// Params (at most 256 bytes) go into the uniform binding that follows the storage bindings:
  /// `@group(0) @binding(bindings.size()) var<uniform> p: Params;`. Empty params: no such binding.
  void dispatch(const Pipeline& pipeline, std::span<const Binding> bindings, std::span<const std::byte> params,
                std::array<uint32_t, 3> workgroups);
  void copy(const Buffer& from, uint64_t from_offset, const Buffer& to, uint64_t to_offset, uint64_t bytes);
  uint32_t dispatch_count() const;

 private:
  friend class Device;
  struct State;
  std::unique_ptr<State> state_;
};

/// Time of one dispatch, from timestamp queries.
struct DispatchTime {
  std::string label;
  double microseconds;
};

class Device {
 public:
  static Result<std::unique_ptr<Device>> create(const DeviceOptions& options);
  ~Device();

  const Caps& caps() const;
  bool lost() const;

  Result<Buffer> create_buffer(uint64_t bytes, std::string_view label, BufferUse use = BufferUse::kStorage);
  uint64_t allocated_bytes() const;  // all live buffers

  /// Compiles once per (label, source, constants); later calls return the same pipeline. A shader error carries
  /// the compiler's own message.
  Result<const Pipeline*> pipeline(const PipelineDesc& desc);

  /// Queues bytes to be in `buffer` before any later submit. Large writes are cut into staged pieces so that
  /// host memory stays bounded.
  Result<void> write(const Buffer& buffer, uint64_t offset, std::span<const std::byte> bytes);

  Commands begin(std::string_view label);
  Result<void> submit(Commands&& commands);           // returns at once
  Result<void> wait();                                // until everything submitted is done
  Result<void> read(const Buffer& buffer, uint64_t offset, std::span<std::byte> out);  // waits

  /// As submit, waits, and gives each dispatch's time. Needs caps().timestamps.
  Result<std::vector<DispatchTime>> submit_timed(Commands&& commands);

  /// For tests: makes the device lost as a driver reset would.
  void destroy_for_test();

  struct State;
  State& state() { return *state_; }

 private:
  Device() = default;
  std::unique_ptr<State> state_;
};

/// All adapters of the library, hardware and software, in a stable order (their index is a DeviceOptions name).
struct AdapterInfo {
  Caps caps;
  std::string driver;   // driver description
};
Result<std::vector<AdapterInfo>> list_adapters(const std::string& library);

/// Typed helpers over the byte interface.
template <class T>
std::span<const std::byte> as_params(const T& params) { return std::as_bytes(std::span(&params, 1)); }

}  // namespace doppler::gpu
