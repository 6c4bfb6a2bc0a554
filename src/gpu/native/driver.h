#pragma once
// Which Vulkan driver the loader sees: a software driver asked for by name is pointed at for the time in
// which the instance, the adapter and the device are made.
#include <optional>
#include <string>
#include <string_view>

#include "base/result.h"

namespace doppler::gpu {

/// Sets VK_DRIVER_FILES and VK_ICD_FILENAMES when made for "lavapipe" or "swiftshader" and the user has set
/// neither; puts them back when it goes. The environment belongs to the process: no other thread may read or
/// change it meanwhile.
class DriverChoice {
 public:
  static Result<DriverChoice> make(std::string_view device_name);
  DriverChoice(DriverChoice&& other) noexcept : set_(other.set_) { other.set_ = false; }
  DriverChoice& operator=(DriverChoice&&) = delete;
  ~DriverChoice();

 private:
  explicit DriverChoice(bool set) : set_(set) {}
  bool set_;
};

}  // namespace doppler::gpu
