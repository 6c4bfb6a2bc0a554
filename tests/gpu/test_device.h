#pragma once
// The device GPU tests run on: DOPPLER_TEST_DEVICE (ctest sets lavapipe, then swiftshader), lavapipe by
// default.
#include <doctest/doctest.h>

#include <cstdlib>
#include <memory>
#include <string>

#include "gpu/device.h"

namespace doppler::gpu {

inline std::string test_device_name() {
  const char* name = std::getenv("DOPPLER_TEST_DEVICE");
  return name != nullptr && *name != '\0' ? name : "lavapipe";
}

/// A fresh device, or a failed test with the error's own cure.
inline std::unique_ptr<Device> open_test_device(DeviceOptions options = {}) {
  if (options.name.empty()) options.name = test_device_name();
  Result<std::unique_ptr<Device>> device = Device::create(options);
  if (!device) FAIL(device.error().message);
  return std::move(*device);
}

/// One device for the whole test program.
inline Device& test_device() {
  static const std::unique_ptr<Device> device = open_test_device();
  return *device;
}

}  // namespace doppler::gpu
