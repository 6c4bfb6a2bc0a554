#pragma once
// What a device reaches when it does nothing else: the measure of a profile's bandwidths and rates.
#include <cstdint>

#include "gpu/device.h"

namespace doppler::kernels {

struct DeviceLimits {
  double read_gb_s = 0;  // reading a large buffer once
  double int8_tops = 0;  // dot4I8Packed, a product and a sum counted as two
};

/// Takes the best of a few runs, after one that wakes the device up. Needs caps().timestamps (kUnsupported).
Result<DeviceLimits> measure_limits(gpu::Device& device);

}  // namespace doppler::kernels
