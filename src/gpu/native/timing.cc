// Timed submission: every dispatch in a pass of its own between two timestamps.
#include <algorithm>

#include "gpu/native/state.h"

namespace doppler::gpu {
namespace {

constexpr uint32_t kDispatchesPerSet = 2048;  // a query set holds at most 4,096 timestamps

struct TimingObjects {
  const Api& api;
  WGPUQuerySet queries = nullptr;
  WGPUBuffer resolved = nullptr;
  ~TimingObjects() {
    if (queries != nullptr) api.QuerySetRelease(queries);
    if (resolved != nullptr) api.BufferRelease(resolved);
  }
};

}  // namespace

Result<std::vector<DispatchTime>> Device::submit_timed(Commands&& commands) {
  const Commands taken = std::move(commands);
  DeviceState& state = *state_;
  DOPPLER_CHECK_OK(state.check());
  if (!state.caps.timestamps)
    return fail(ErrorCode::kUnsupported, "[gpu] timestamps were wanted, {} has none", state.caps.adapter);
  if (taken.list_ == nullptr) return std::vector<DispatchTime>();
  const CommandList& list = *taken.list_;
  if (list.error) return tl::unexpected<Error>(*list.error);

  TimingObjects objects{*state.api};
  std::optional<Error> error = state.scoped([&] {
    WGPUQuerySetDescriptor desc = WGPU_QUERY_SET_DESCRIPTOR_INIT;
    desc.label = view("timestamps");
    desc.type = WGPUQueryType_Timestamp;
    desc.count = 2 * kDispatchesPerSet;
    objects.queries = state.api->DeviceCreateQuerySet(state.device, &desc);
  });
  if (error) return fail(error->code, "[gpu] timestamps: {}", error->message);
  DOPPLER_TRY(objects.resolved,
              state.make_buffer(2 * kDispatchesPerSet * sizeof(uint64_t),
                                WGPUBufferUsage_QueryResolve | WGPUBufferUsage_CopySrc, "timestamps"));
  // wgpu-native gives ticks, Dawn nanoseconds.
  const double ns_per_tick =
      state.api->QueueGetTimestampPeriod != nullptr ? state.api->QueueGetTimestampPeriod(state.queue) : 1.0;

  DOPPLER_CHECK_OK(state.write_params(list));
  std::vector<DispatchTime> times;
  times.reserve(list.dispatches);
  std::vector<uint64_t> ticks;
  for (size_t first = 0; first < list.entries.size();) {
    size_t last = first;
    uint32_t dispatches = 0;
    while (last < list.entries.size() && dispatches < kDispatchesPerSet)
      dispatches += list.entries[last++].pipeline != nullptr ? 1 : 0;
    const bool timed = dispatches > 0;
    DOPPLER_TRY(WGPUCommandBuffer buffer, state.encode(list, first, last, timed ? objects.queries : nullptr,
                                                       timed ? objects.resolved : nullptr));
    state.api->QueueSubmit(state.queue, 1, &buffer);
    state.api->CommandBufferRelease(buffer);
    ticks.resize(2 * dispatches);
    if (timed)
      DOPPLER_CHECK_OK(state.read_back(objects.resolved, 0, std::as_writable_bytes(std::span(ticks))));
    for (size_t i = first, t = 0; i < last; ++i) {
      if (list.entries[i].pipeline == nullptr) continue;
      const uint64_t start = ticks[t], end = ticks[t + 1];
      times.push_back({list.entries[i].pipeline->label,
                       end > start ? static_cast<double>(end - start) * ns_per_tick * 1e-3 : 0.0});
      t += 2;
    }
    first = last;
  }
  DOPPLER_CHECK_OK(state.wait_idle());
  return times;
}

}  // namespace doppler::gpu
