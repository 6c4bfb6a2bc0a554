#include "kernels/limits/limits.h"

#include <algorithm>
#include <chrono>

#include "kernels/common/record.h"

namespace doppler::kernels {
namespace {

constexpr uint32_t kWorkgroup = 256;
constexpr int kRuns = 6;
constexpr std::chrono::milliseconds kWarmUp(400);

struct ReadParams {
  uint32_t vec4s, threads, pad0 = 0, pad1 = 0;
};

struct Int8Params {
  uint32_t rounds, pad0 = 0, pad1 = 0, pad2 = 0;
};

/// Microseconds of the fastest of a few dispatches.
Result<double> fastest(gpu::Device& device, const gpu::Pipeline& pipeline,
                       std::span<const gpu::Binding> bindings, std::span<const std::byte> params,
                       uint32_t workgroups) {
  // A card that idles runs at a fraction of its clock and takes a while to leave it.
  const auto begin = std::chrono::steady_clock::now();
  while (device.caps().hardware && std::chrono::steady_clock::now() - begin < kWarmUp) {
    gpu::Commands warm = device.begin("warm up");
    for (int i = 0; i < kRuns; ++i) warm.dispatch(pipeline, bindings, params, {workgroups, 1, 1});
    DOPPLER_CHECK_OK(device.submit(std::move(warm)));
    DOPPLER_CHECK_OK(device.wait());
  }
  gpu::Commands commands = device.begin("limits");
  for (int i = 0; i < kRuns; ++i) commands.dispatch(pipeline, bindings, params, {workgroups, 1, 1});
  DOPPLER_TRY(const auto times, device.submit_timed(std::move(commands)));
  double best = times.back().microseconds;
  for (const gpu::DispatchTime& time : times)
    if (time.microseconds > 0) best = std::min(best, time.microseconds);
  return std::max(best, 1e-3);
}

}  // namespace

Result<DeviceLimits> measure_limits(gpu::Device& device) {
  const gpu::Caps& caps = device.caps();
  // Larger than any cache, on a software driver small enough to end soon.
  const uint64_t wanted = caps.hardware ? 1ull << 30 : 64ull << 20;
  const uint64_t bytes = std::min({caps.max_binding_bytes, caps.max_buffer_bytes, wanted}) / 4096 * 4096;
  DOPPLER_TRY(const gpu::Buffer data, device.create_buffer(bytes, "limits"));
  DOPPLER_TRY(const gpu::Buffer out, device.create_buffer(16, "limits"));
  DOPPLER_TRY(const gpu::Pipeline* read, kernel_pipeline(device, "limits/read", "limits/read.wgsl", {}));
  DOPPLER_TRY(const gpu::Pipeline* int8, kernel_pipeline(device, "limits/int8", "limits/int8.wgsl", {}));
  const uint32_t workgroups = caps.hardware ? 4096 : 64;
  DeviceLimits limits;

  const ReadParams read_params{static_cast<uint32_t>(bytes / 16), workgroups * kWorkgroup};
  const gpu::Binding read_bindings[] = {{&data}, {&out}};
  DOPPLER_TRY(const double read_us,
              fastest(device, *read, read_bindings, gpu::as_params(read_params), workgroups));
  limits.read_gb_s = static_cast<double>(bytes) * 1e-3 / read_us;

  const Int8Params int8_params{caps.hardware ? 4096u : 256u};
  const gpu::Binding int8_bindings[] = {{&out}};
  DOPPLER_TRY(const double int8_us,
              fastest(device, *int8, int8_bindings, gpu::as_params(int8_params), workgroups));
  const double dots = 8.0 * int8_params.rounds * workgroups * kWorkgroup;
  limits.int8_tops = dots * 8 * 1e-6 / int8_us;
  return limits;
}

}  // namespace doppler::kernels
