#include "gpu/device.h"

#include <doctest/doctest.h>
#include <sys/resource.h>

#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <numeric>
#include <string>

#include "gpu/test_device.h"

namespace doppler::gpu {
namespace {

constexpr std::string_view kScale =
    "// y = x * factor + index\n"
    "struct Params { factor: u32, count: u32 }\n"
    "@group(0) @binding(0) var<storage, read> x: array<u32>;\n"
    "@group(0) @binding(1) var<storage, read_write> y: array<u32>;\n"
    "@group(0) @binding(2) var<uniform> p: Params;\n"
    "override kAdd: u32 = 0;\n"
    "@compute @workgroup_size(64) fn main(@builtin(global_invocation_id) g: vec3u) {\n"
    "  if (g.x < p.count) { y[g.x] = x[g.x] * p.factor + g.x + kAdd; }\n"
    "}\n";
constexpr std::string_view kIncrement =
    "@group(0) @binding(0) var<storage, read_write> n: array<u32>;\n"
    "@compute @workgroup_size(1) fn main() { n[0] = n[0] + 1; }\n";

struct ScaleParams {
  uint32_t factor, count;
};

const Pipeline& pipeline_of(Device& device, std::string label, std::string_view source) {
  auto pipeline = device.pipeline({.label = std::move(label), .source = source});
  if (!pipeline) FAIL(pipeline.error().message);
  return **pipeline;
}

Buffer buffer_of(Device& device, uint64_t bytes) {
  auto buffer = device.create_buffer(bytes, "test");
  if (!buffer) FAIL(buffer.error().message);
  return std::move(*buffer);
}

Buffer buffer_with(Device& device, std::span<const uint32_t> values) {
  Buffer buffer = buffer_of(device, values.size_bytes());
  REQUIRE(device.write(buffer, 0, std::as_bytes(values)));
  return buffer;
}

std::vector<uint32_t> read_words(Device& device, const Buffer& buffer, size_t count) {
  std::vector<uint32_t> out(count);
  auto ok = device.read(buffer, 0, std::as_writable_bytes(std::span(out)));
  if (!ok) FAIL(ok.error().message);
  return out;
}

// Runs y = 3 x + i on the device: it works.
void check_works(Device& device) {
  const Buffer x = buffer_with(device, std::vector<uint32_t>{5, 6, 7}), y = buffer_of(device, 12);
  Commands commands = device.begin("works");
  commands.dispatch(pipeline_of(device, "scale", kScale), std::array{Binding{&x}, Binding{&y}},
                    as_params(ScaleParams{3, 3}), {1, 1, 1});
  REQUIRE(device.submit(std::move(commands)));
  CHECK(read_words(device, y, 3) == std::vector<uint32_t>{15, 19, 23});
}

}  // namespace

TEST_CASE("a device says what it is") {
  const Caps& caps = test_device().caps();
  CAPTURE(caps.adapter);
  CHECK(caps.backend == "Vulkan");
  CHECK_FALSE(caps.hardware);
  CHECK(caps.unified_memory);
  CHECK(caps.max_binding_bytes >= 128u << 20);
  CHECK(caps.max_workgroup_invocations >= 256);
  if (test_device_name() == "lavapipe") {
    CHECK(caps.adapter.find("llvmpipe") != std::string::npos);
    CHECK(caps.f16);
    CHECK(caps.subgroup_size == 8);
  } else {
    CHECK(caps.adapter.find("SwiftShader") != std::string::npos);
    CHECK_FALSE(caps.f16);
    CHECK(caps.subgroup_size == 4);
  }
}

TEST_CASE("what is written is read, at odd sizes and offsets") {
  Device& device = test_device();
  for (size_t size : {1u, 2u, 3u, 4u, 5u, 63u, 1000u, 4097u, (4u << 20) + 7u, (17u << 20) + 1u}) {
    CAPTURE(size);
    const Buffer buffer = buffer_of(device, size + 8);
    std::vector<std::byte> bytes(size), back(size);
    for (size_t i = 0; i < size; ++i) bytes[i] = static_cast<std::byte>(i * 2654435761u >> 13);
    REQUIRE(device.write(buffer, 4, bytes));
    REQUIRE(device.read(buffer, 4, back));
    CHECK(back == bytes);
    if (size < 5) continue;
    std::vector<std::byte> inner(size - 3);
    REQUIRE(device.read(buffer, 6, inner));  // two bytes in
    CHECK(std::equal(inner.begin(), inner.end(), bytes.begin() + 2));
  }
}

TEST_CASE("new buffers hold zeros, and allocated bytes are counted") {
  Device& device = test_device();
  const uint64_t before = device.allocated_bytes();
  {
    const Buffer buffer = buffer_of(device, 1001);
    CHECK(buffer.bytes() == 1004);
    CHECK(device.allocated_bytes() == before + 1004);
    CHECK(read_words(device, buffer, 251) == std::vector<uint32_t>(251, 0));
  }
  CHECK(device.allocated_bytes() == before);
}

TEST_CASE("dispatches see params, constants, ranges and each other") {
  Device& device = test_device();
  std::vector<uint32_t> input(1000);
  std::iota(input.begin(), input.end(), 10u);
  const Buffer x = buffer_with(device, input), y = buffer_of(device, 4000), z = buffer_of(device, 4000);
  const Pipeline& scale = pipeline_of(device, "scale", kScale);
  const auto plus = device.pipeline({.label = "scale/plus", .source = kScale, .constants = {{"kAdd", 100}}});
  REQUIRE(plus);
  CHECK(*plus != &scale);
  CHECK(*device.pipeline({.label = "scale/plus", .source = kScale, .constants = {{"kAdd", 100}}}) == *plus);
  Commands commands = device.begin("chain");
  commands.dispatch(scale, std::array{Binding{&x}, Binding{&y}}, as_params(ScaleParams{2, 1000}), {16, 1, 1});
  commands.dispatch(**plus, std::array{Binding{&y, 256, 16}, Binding{&z}}, as_params(ScaleParams{1, 4}),
                    {1, 1, 1});
  commands.copy(y, 0, z, 16, 8);
  CHECK(commands.dispatch_count() == 2);
  REQUIRE(device.submit(std::move(commands)));
  const auto got = read_words(device, z, 7);
  for (uint32_t i = 0; i < 4; ++i) CHECK(got[i] == (10 + 64 + i) * 2 + 64 + i + i + 100);
  CHECK(got[4] == 20);
  CHECK(got[5] == 23);
  CHECK(got[6] == 0);
}

TEST_CASE("ten thousand dependent dispatches in one list") {
  Device& device = test_device();
  const Buffer n = buffer_of(device, 4), x = buffer_of(device, 4);
  const Pipeline& increment = pipeline_of(device, "increment", kIncrement);
  const Pipeline& scale = pipeline_of(device, "scale", kScale);
  Commands commands = device.begin("many");
  for (uint32_t i = 0; i < 5000; ++i) {
    commands.dispatch(increment, std::array{Binding{&n}}, {}, {1, 1, 1});
    commands.dispatch(scale, std::array{Binding{&n}, Binding{&x}}, as_params(ScaleParams{i, 1}), {1, 1, 1});
  }
  CHECK(commands.dispatch_count() == 10000);
  REQUIRE(device.submit(std::move(commands)));
  CHECK(read_words(device, n, 1)[0] == 5000);
  CHECK(read_words(device, x, 1)[0] == 5000u * 4999u);  // params beyond the first arena arrive too
}

TEST_CASE("buffers may go while a list refers to them") {
  Device& device = test_device();
  const Pipeline& scale = pipeline_of(device, "scale", kScale);
  const Buffer y = buffer_of(device, 12);
  Commands commands = device.begin("early");
  {
    const Buffer x = buffer_with(device, std::vector<uint32_t>{1, 2, 3});
    commands.dispatch(scale, std::array{Binding{&x}, Binding{&y}}, as_params(ScaleParams{10, 3}), {1, 1, 1});
  }
  for (int i = 0; i < 20; ++i) buffer_of(device, 12);  // would take the freed handle's place
  REQUIRE(device.submit(std::move(commands)));
  CHECK(read_words(device, y, 3) == std::vector<uint32_t>{10, 21, 32});
}

TEST_CASE("a list that is never submitted does nothing") {
  Device& device = test_device();
  const Buffer n = buffer_of(device, 4);
  {
    Commands commands = device.begin("dropped");
    commands.dispatch(pipeline_of(device, "increment", kIncrement), std::array{Binding{&n}}, {}, {1, 1, 1});
  }
  CHECK(read_words(device, n, 1)[0] == 0);
}

TEST_CASE("shader errors carry the compiler's message and leave the device working") {
  Device& device = test_device();
  for (std::string_view source : {"@compute @workgroup_size(1) fn main() { let a: u32 = undefined_name; }",
                                  "@compute @workgroup_size(1) fn main() { ", "fn other() {}",
                                  "@compute @workgroup_size(100000) fn main() {}"}) {
    CAPTURE(source);
    const auto pipeline = device.pipeline({.label = "bad/shader", .source = source});
    REQUIRE_FALSE(pipeline);
    CHECK(pipeline.error().code == ErrorCode::kGpu);
    CHECK(pipeline.error().message.find("bad/shader") != std::string::npos);
    if (source.find("undefined_name") != std::string_view::npos)
      CHECK(pipeline.error().message.find("undefined_name") != std::string::npos);
  }
  check_works(device);
}

TEST_CASE("wrong dispatches are errors of submit, and the device works on") {
  Device& device = test_device();
  const Pipeline& scale = pipeline_of(device, "scale", kScale);
  const Buffer x = buffer_of(device, 1024), y = buffer_of(device, 1024);
  const Buffer none;
  const auto params = ScaleParams{1, 1};
  const auto refused = [&](std::span<const Binding> bindings, std::span<const std::byte> p, uint32_t groups) {
    Commands commands = device.begin("wrong");
    commands.dispatch(scale, bindings, p, {groups, 1, 1});
    const auto result = device.submit(std::move(commands));
    return !result && result.error().code == ErrorCode::kGpu;
  };
  CHECK(refused(std::array{Binding{&x}}, as_params(params), 1));                            // too few
  CHECK(refused(std::array{Binding{&x}, Binding{&y}, Binding{&y}}, as_params(params), 1));  // too many
  CHECK(refused(std::array{Binding{&none}, Binding{&y}}, as_params(params), 1));            // no buffer
  CHECK(refused(std::array{Binding{nullptr}, Binding{&y}}, as_params(params), 1));
  CHECK(refused(std::array{Binding{&x, 4}, Binding{&y}}, as_params(params), 1));         // misaligned
  CHECK(refused(std::array{Binding{&x, 0, 2048}, Binding{&y}}, as_params(params), 1));   // beyond the end
  CHECK(refused(std::array{Binding{&x, 1024}, Binding{&y}}, as_params(params), 1));      // empty
  CHECK(refused(std::array{Binding{&x}, Binding{&y}}, {}, 1));                           // no params
  CHECK(refused(std::array{Binding{&x}, Binding{&y}}, std::vector<std::byte>(257), 1));  // too many params
  CHECK(
      refused(std::array{Binding{&x}, Binding{&y}}, as_params(uint32_t{1}), UINT32_MAX));  // too many groups
  CHECK(refused(std::array{Binding{&x}, Binding{&x}}, as_params(params), 1));              // read and written
  Commands copies = device.begin("copies");
  copies.copy(x, 0, y, 1020, 8);
  CHECK_FALSE(device.submit(std::move(copies)));
  CHECK_FALSE(device.write(x, 1020, std::vector<std::byte>(8)));
  CHECK_FALSE(device.write(x, 2, std::vector<std::byte>(4)));
  std::vector<std::byte> out(8);
  CHECK_FALSE(device.read(x, 1020, out));
  CHECK_FALSE(device.read(none, 0, out));
  check_works(device);
}

TEST_CASE("a binding over the adapter's limit is refused before it reaches the library") {
  Device& device = test_device();
  const uint64_t bytes = device.caps().max_binding_bytes + 256;
  if (bytes > device.caps().max_buffer_bytes) return;
  const Buffer x = buffer_of(device, bytes), y = buffer_of(device, 256);
  Commands commands = device.begin("large");
  commands.dispatch(pipeline_of(device, "scale", kScale), std::array{Binding{&x}, Binding{&y}},
                    as_params(ScaleParams{1, 1}), {1, 1, 1});
  const auto result = device.submit(std::move(commands));
  REQUIRE_FALSE(result);
  CHECK(result.error().message.find("split") != std::string::npos);
}

TEST_CASE("a buffer over the limit is out of memory") {
  Device& device = test_device();
  for (uint64_t bytes : {device.caps().max_buffer_bytes + 1, UINT64_MAX}) {
    const auto buffer = device.create_buffer(bytes, "huge");
    REQUIRE_FALSE(buffer);
    CHECK(buffer.error().code == ErrorCode::kOutOfMemory);
  }
  check_works(device);
}

TEST_CASE("when memory runs out the error is a value and the device works on") {
  const std::unique_ptr<Device> device = open_test_device();
  check_works(*device);
  // Allow this process 256 MiB of address space more than it has now.
  std::ifstream statm("/proc/self/statm");
  uint64_t pages = 0;
  statm >> pages;
  REQUIRE(pages > 0);
  rlimit old{};
  REQUIRE(getrlimit(RLIMIT_AS, &old) == 0);
  rlimit tight = old;
  tight.rlim_cur = pages * 4096 + (256u << 20);
  REQUIRE(setrlimit(RLIMIT_AS, &tight) == 0);
  std::vector<Buffer> taken;
  Error error{ErrorCode::kGpu, ""};
  for (int i = 0; i < 64; ++i) {
    auto buffer = device->create_buffer(64u << 20, "filler");
    if (!buffer) {
      error = buffer.error();
      break;
    }
    taken.push_back(std::move(*buffer));
  }
  setrlimit(RLIMIT_AS, &old);
  CAPTURE(error.message);
  CHECK(error.code == ErrorCode::kOutOfMemory);
  CHECK(error.message.find("filler") != std::string::npos);
  taken.clear();
  check_works(*device);
}

TEST_CASE("a lost device answers with errors, and another can be opened") {
  std::unique_ptr<Device> device = open_test_device();
  const Buffer x = buffer_of(*device, 64), y = buffer_of(*device, 64);
  const Pipeline& scale = pipeline_of(*device, "scale", kScale);
  Commands recorded = device->begin("before");
  recorded.dispatch(scale, std::array{Binding{&x}, Binding{&y}}, as_params(ScaleParams{1, 1}), {1, 1, 1});
  device->destroy_for_test();
  CHECK(device->lost());
  const auto is_lost = [](const auto& result) {
    return !result && result.error().code == ErrorCode::kDeviceLost;
  };
  CHECK(is_lost(device->submit(std::move(recorded))));
  Commands after = device->begin("after");
  after.dispatch(scale, std::array{Binding{&x}, Binding{&y}}, as_params(ScaleParams{1, 1}), {1, 1, 1});
  CHECK(is_lost(device->submit(std::move(after))));
  CHECK(is_lost(device->create_buffer(64, "after")));
  CHECK(is_lost(device->pipeline({.label = "increment", .source = kIncrement})));
  std::vector<std::byte> bytes(64);
  CHECK(is_lost(device->write(x, 0, bytes)));
  CHECK(is_lost(device->read(x, 0, bytes)));
  CHECK(is_lost(device->wait()));
  CHECK(is_lost(device->submit_timed(device->begin("timed"))));
  device = open_test_device();
  check_works(*device);
}

TEST_CASE("timestamps give each dispatch its time") {
  Device& device = test_device();
  if (!device.caps().timestamps) {
    const auto times = device.submit_timed(device.begin("timed"));
    REQUIRE_FALSE(times);
    CHECK(times.error().code == ErrorCode::kUnsupported);
    return;
  }
  constexpr std::string_view kSpin =
      "struct Params { turns: u32 }\n"
      "@group(0) @binding(0) var<storage, read_write> n: array<f32>;\n"
      "@group(0) @binding(1) var<uniform> p: Params;\n"
      "@compute @workgroup_size(64) fn main(@builtin(global_invocation_id) g: vec3u) {\n"
      "  var x = n[g.x]; for (var i = 0u; i < p.turns; i++) { x = x * 0.999 + 0.5; } n[g.x] = x;\n"
      "}\n";
  const Buffer n = buffer_of(device, 4096), m = buffer_of(device, 4096);
  const Pipeline& spin = pipeline_of(device, "spin", kSpin);
  Commands commands = device.begin("timed");
  commands.dispatch(spin, std::array{Binding{&n}}, as_params(uint32_t{100000}), {16, 1, 1});
  commands.copy(n, 0, m, 0, 4096);
  for (int i = 0; i < 2100; ++i)  // more than one query set holds
    commands.dispatch(spin, std::array{Binding{&m}}, as_params(uint32_t{1}), {1, 1, 1});
  const auto times = device.submit_timed(std::move(commands));
  if (!times) FAIL(times.error().message);
  REQUIRE(times->size() == 2101);
  CHECK((*times)[0].label == "spin");
  CHECK((*times)[0].microseconds > 100);
  CHECK((*times)[0].microseconds < 10e6);
  CHECK((*times)[2100].microseconds < (*times)[0].microseconds);
}

TEST_CASE("features can be left out") {
  const std::unique_ptr<Device> device = open_test_device({.disable_f16 = true, .disable_subgroups = true});
  CHECK_FALSE(device->caps().f16);
  CHECK_FALSE(device->caps().subgroups);
  CHECK(device->caps().subgroup_size == 0);
  const auto half = device->pipeline({.label = "half", .source = kIncrement, .uses_f16 = true});
  REQUIRE_FALSE(half);
  CHECK(half.error().code == ErrorCode::kUnsupported);
  CHECK_FALSE(device->pipeline({.label = "group", .source = kIncrement, .uses_subgroups = true}));
  check_works(*device);
}

TEST_CASE("f16 and subgroup shaders compile where the adapter has them") {
  Device& device = test_device();
  constexpr std::string_view kHalf =
      "@group(0) @binding(0) var<storage, read_write> n: array<f16>;\n"
      "@compute @workgroup_size(1) fn main() { n[0] = n[1] + 1.5h; }\n";
  constexpr std::string_view kSum =
      "@group(0) @binding(0) var<storage, read_write> n: array<u32>;\n"
      "@compute @workgroup_size(64) fn main(@builtin(local_invocation_index) i: u32,\n"
      "    @builtin(subgroup_size) s: u32, @builtin(subgroup_invocation_id) lane: u32) {\n"
      "  let sum = subgroupAdd(lane); if (i == 0) { n[0] = sum; n[1] = s; }\n"
      "}\n";
  const Buffer n = buffer_of(device, 8);
  if (device.caps().f16) {
    const auto pipeline = device.pipeline({.label = "half", .source = kHalf, .uses_f16 = true});
    if (!pipeline) FAIL(pipeline.error().message);
    Commands commands = device.begin("half");
    commands.dispatch(**pipeline, std::array{Binding{&n}}, {}, {1, 1, 1});
    REQUIRE(device.submit(std::move(commands)));
    CHECK(read_words(device, n, 1)[0] == 0x3e00);  // 1.5
  }
  if (device.caps().subgroups) {
    const auto pipeline = device.pipeline({.label = "sum", .source = kSum, .uses_subgroups = true});
    if (!pipeline) FAIL(pipeline.error().message);
    Commands commands = device.begin("sum");
    commands.dispatch(**pipeline, std::array{Binding{&n}}, {}, {1, 1, 1});
    REQUIRE(device.submit(std::move(commands)));
    const auto got = read_words(device, n, 2);
    CHECK(got[1] == device.caps().subgroup_size);
    CHECK(got[0] == got[1] * (got[1] - 1) / 2);
  }
}

TEST_CASE("shaders without bounds checks run too") {
  check_works(*open_test_device({.checked_shaders = false}));
}

TEST_CASE("buffers and lists may outlive their device") {
  Buffer kept;
  Commands list;
  {
    const std::unique_ptr<Device> device = open_test_device();
    kept = buffer_of(*device, 16);
    list = device->begin("kept");
    list.dispatch(pipeline_of(*device, "increment", kIncrement), std::array{Binding{&kept}}, {}, {1, 1, 1});
  }
  CHECK(kept.bytes() == 16);
}

}  // namespace doppler::gpu
