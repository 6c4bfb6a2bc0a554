// Bytes to and from the device.
#include <algorithm>
#include <bit>
#include <chrono>
#include <thread>

#include "gpu/native/state.h"

namespace doppler::gpu {

Result<void> Device::write(const Buffer& buffer, uint64_t offset, std::span<const std::byte> bytes) {
  DeviceState& state = *state_;
  DOPPLER_CHECK_OK(state.check());
  if (!buffer || offset % 4 != 0 || offset > buffer.bytes() || bytes.size() > buffer.bytes() - offset)
    return fail(ErrorCode::kGpu,
                "[gpu] a write of {} bytes at {} was wanted, the buffer has {} (offsets are multiples "
                "of 4)",
                bytes.size(), offset, buffer.bytes());
  const WGPUBuffer handle = static_cast<WGPUBuffer>(buffer.handle_);
  while (bytes.size() >= 4) {
    const size_t piece = std::min<size_t>(bytes.size() & ~size_t{3}, kWritePiece);
    state.api->QueueWriteBuffer(state.queue, handle, offset, bytes.data(), piece);
    offset += piece;
    bytes = bytes.subspan(piece);
    state.staged_bytes += piece;
    if (state.staged_bytes >= kMaxStagedBytes) {
      state.api->QueueSubmit(state.queue, 0, nullptr);  // starts the copies, so that their staging can go
      DOPPLER_CHECK_OK(state.wait_idle());
    }
  }
  if (!bytes.empty()) {
    std::array<std::byte, 4> tail{};
    std::memcpy(tail.data(), bytes.data(), bytes.size());
    state.api->QueueWriteBuffer(state.queue, handle, offset, tail.data(), tail.size());
  }
  return state.check();
}

Result<void> Device::wait() { return state_->wait_idle(); }

Result<void> DeviceState::read_back(WGPUBuffer from, uint64_t offset, std::span<std::byte> out) {
  // Sizes are powers of two from 4 KiB, so that few buffers serve all reads.
  const uint64_t size = std::max<uint64_t>(4096, std::bit_ceil<uint64_t>(out.size()));
  std::vector<WGPUBuffer>& spare = readback[size];
  WGPUBuffer staging = nullptr;
  if (spare.empty()) {
    DOPPLER_TRY(staging, make_buffer(size, WGPUBufferUsage_MapRead | WGPUBufferUsage_CopyDst, "readback"));
  } else {
    staging = spare.back();
    spare.pop_back();
  }
  CommandList copy;
  copy.label = "readback";
  CommandEntry& entry = copy.entries.emplace_back();
  entry.from = from;
  entry.to = staging;
  entry.from_offset = offset;
  entry.bytes = out.size();
  Result<WGPUCommandBuffer> commands = encode(copy, 0, 1, nullptr, nullptr);
  if (!commands) {
    api->BufferRelease(staging);
    return forward_error(commands);
  }
  api->QueueSubmit(queue, 1, &*commands);
  api->CommandBufferRelease(*commands);

  struct Answer {
    bool done = false;
    WGPUMapAsyncStatus status = WGPUMapAsyncStatus_Error;
    std::string message;
  } answer;
  WGPUBufferMapCallbackInfo callback = WGPU_BUFFER_MAP_CALLBACK_INFO_INIT;
  callback.mode = WGPUCallbackMode_AllowProcessEvents;
  callback.userdata1 = &answer;
  callback.callback = [](WGPUMapAsyncStatus status, WGPUStringView message, void* user, void*) {
    auto* a = static_cast<Answer*>(user);
    a->done = true;
    a->status = status;
    if (status != WGPUMapAsyncStatus_Success) a->message = text(message);
  };
  api->BufferMapAsync(staging, WGPUMapMode_Read, 0, out.size(), callback);
  for (int turns = 0; !answer.done; ++turns) {
    pump(/*wait=*/true);
    if (turns > 200) std::this_thread::sleep_for(std::chrono::microseconds(turns > 2000 ? 500 : 20));
  }
  staged_bytes = 0;
  const void* mapped = answer.status == WGPUMapAsyncStatus_Success
                           ? api->BufferGetConstMappedRange(staging, 0, out.size())
                           : nullptr;
  if (mapped == nullptr) {
    api->BufferRelease(staging);
    DOPPLER_CHECK_OK(check());
    return fail(ErrorCode::kGpu, "[gpu] reading {} bytes back: {}", out.size(), answer.message);
  }
  std::memcpy(out.data(), mapped, out.size());
  api->BufferUnmap(staging);
  readback[size].push_back(staging);
  return check();
}

Result<void> Device::read(const Buffer& buffer, uint64_t offset, std::span<std::byte> out) {
  DeviceState& state = *state_;
  DOPPLER_CHECK_OK(state.check());
  if (!buffer || offset > buffer.bytes() || out.size() > buffer.bytes() - offset)
    return fail(ErrorCode::kGpu, "[gpu] a read of {} bytes at {} was wanted, the buffer has {}", out.size(),
                offset, buffer.bytes());
  const WGPUBuffer handle = static_cast<WGPUBuffer>(buffer.handle_);
  const uint64_t begin = offset & ~3ull, end = (offset + out.size() + 3) & ~3ull;
  if (begin == offset && end == offset + out.size()) {
    for (size_t at = 0; at < out.size(); at += kReadPiece)
      DOPPLER_CHECK_OK(
          state.read_back(handle, offset + at, out.subspan(at, std::min(kReadPiece, out.size() - at))));
    return {};
  }
  // Odd ends: through a buffer of whole words.
  std::vector<std::byte> words(end - begin);
  DOPPLER_CHECK_OK(read(buffer, begin, words));
  if (!out.empty()) std::memcpy(out.data(), words.data() + (offset - begin), out.size());
  return {};
}

}  // namespace doppler::gpu
