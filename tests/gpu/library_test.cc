// Where the library, the driver and the adapter come from, and what is said when they do not.
#include <doctest/doctest.h>

#include <cstdio>
#include <cstdlib>
#include <string>

#include "gpu/device.h"
#include "gpu/test_device.h"

namespace doppler::gpu {
namespace {

struct ScopedEnv {
  ScopedEnv(const char* name, const char* value) : name_(name) { setenv(name, value, 1); }
  ~ScopedEnv() { unsetenv(name_); }
  const char* name_;
};

Error error_of(const DeviceOptions& options) {
  auto device = Device::create(options);
  REQUIRE_FALSE(device);
  return device.error();
}

}  // namespace

TEST_CASE("a library path that leads nowhere is named") {
  const Error error = error_of({.library = "/nowhere/libwebgpu.so"});
  CHECK(error.code == ErrorCode::kNotFound);
  CHECK(error.message.find("/nowhere/libwebgpu.so") != std::string::npos);
  const ScopedEnv env("DOPPLER_WEBGPU", "/nowhere/from_env.so");
  CHECK(error_of({}).message.find("/nowhere/from_env.so") != std::string::npos);
  CHECK_FALSE(list_adapters(""));
}

TEST_CASE("a library that is not WebGPU is told by what it lacks") {
  const Error error = error_of({.library = "libm.so.6"});
  CHECK(error.code == ErrorCode::kUnsupported);
  CHECK(error.message.find("wgpuCreateInstance") != std::string::npos);
}

TEST_CASE("a file that is not a library is an error") {
  CHECK(error_of({.library = "/proc/self/status"}).code == ErrorCode::kNotFound);
}

TEST_CASE("an adapter that is not there is named, with those that are") {
  const Error error = error_of({.name = "no such adapter"});
  CHECK(error.code == ErrorCode::kNotFound);
  CHECK(error.message.find("no such adapter") != std::string::npos);
  CHECK(error_of({.name = "99"}).code == ErrorCode::kNotFound);
}

TEST_CASE("without a driver there is no adapter") {
  const ScopedEnv env("VK_DRIVER_FILES", "/nowhere/icd.json");
  const Error error = error_of({});
  CHECK(error.code == ErrorCode::kNotFound);
  CHECK(error.message.find("mesa-vulkan-drivers") != std::string::npos);
  CHECK(error_of({.name = "lavapipe"}).code == ErrorCode::kNotFound);  // the user's choice of driver stands
}

TEST_CASE("adapters are listed in an order that their index follows") {
  const std::string file = software_driver_file(test_device_name());
  REQUIRE_FALSE(file.empty());
  const ScopedEnv env("VK_DRIVER_FILES", file.c_str());
  const auto adapters = list_adapters("");
  REQUIRE(adapters);
  REQUIRE(adapters->size() >= 1);
  const auto device = Device::create({.name = "0"});
  REQUIRE(device);
  CHECK((*device)->caps().adapter == (*adapters)[0].caps.adapter);
  CHECK(Device::create({.name = (*adapters)[0].caps.adapter.substr(0, 5)}));
}

TEST_CASE("both software drivers can be open in one process") {
  const auto lavapipe = Device::create({.name = "lavapipe"});
  if (!lavapipe) FAIL(lavapipe.error().message);
  const auto swiftshader = Device::create({.name = "swiftshader"});
  if (!swiftshader) FAIL(swiftshader.error().message);
  CHECK((*lavapipe)->caps().adapter != (*swiftshader)->caps().adapter);
  CHECK(std::getenv("VK_DRIVER_FILES") == nullptr);
}

}  // namespace doppler::gpu
