#pragma once
// Which Vulkan driver the loader sees: a software driver asked for by name is pointed at for the time in
// which the instance, the adapter and the device are made.
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/result.h"

namespace doppler::gpu {

/// Sets VK_DRIVER_FILES and VK_ICD_FILENAMES when made for "lavapipe" or "swiftshader" and the user has set
/// neither; puts them back when it goes. The environment belongs to the process: no other thread may read or
/// change it meanwhile.
class DriverChoice {
 public:
  static Result<DriverChoice> make(std::string_view device_name);
  DriverChoice(DriverChoice&& other) noexcept : set_(std::exchange(other.set_, {})) {}
  DriverChoice& operator=(DriverChoice&&) = delete;
  ~DriverChoice();

 private:
  DriverChoice() = default;
  void set(const char* variable, const std::string& value);
  std::vector<const char*> set_;  // variables that were not there before
};

}  // namespace doppler::gpu
