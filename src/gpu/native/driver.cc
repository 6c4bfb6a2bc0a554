#include "gpu/native/driver.h"

#include <dlfcn.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <vector>

#include "gpu/device.h"

namespace doppler::gpu {
namespace {

namespace fs = std::filesystem;

constexpr const char* kVariables[] = {"VK_DRIVER_FILES", "VK_ICD_FILENAMES"};  // the second for older loaders

bool is_set(const char* variable) {
  const char* value = std::getenv(variable);
  return value != nullptr && *value != '\0';
}

std::vector<fs::path> driver_folders() {
  std::vector<fs::path> folders;
  if (is_set("XDG_DATA_HOME")) folders.push_back(fs::path(std::getenv("XDG_DATA_HOME")) / "vulkan/icd.d");
  if (is_set("HOME")) folders.push_back(fs::path(std::getenv("HOME")) / ".local/share/vulkan/icd.d");
  for (const char* folder :
       {"/usr/local/etc/vulkan/icd.d", "/etc/vulkan/icd.d", "/usr/local/share/vulkan/icd.d",
        "/usr/share/vulkan/icd.d", "/usr/lib/chromium", "/usr/lib64/chromium-browser",
        "/usr/lib/chromium-browser", "/opt/google/chrome"})
    folders.emplace_back(folder);
  return folders;
}

}  // namespace

std::string software_driver_file(std::string_view name) {
  const std::string_view prefix = name == "lavapipe"      ? "lvp_icd"
                                  : name == "swiftshader" ? "vk_swiftshader_icd"
                                                          : std::string_view();
  if (prefix.empty()) return {};
  for (const fs::path& folder : driver_folders()) {
    std::error_code error;
    std::vector<std::string> found;
    for (fs::directory_iterator it(folder, error), end; !error && it != end; it.increment(error)) {
      const std::string file = it->path().filename().string();
      if (file.starts_with(prefix) && file.ends_with(".json")) found.push_back(it->path().string());
    }
    if (!found.empty()) return *std::min_element(found.begin(), found.end());
  }
  return {};
}

Result<DriverChoice> DriverChoice::make(std::string_view device_name) {
#ifdef __linux__
  // wgpu-native finds no adapter, without a reason, when the loader is missing.
  static void* const loader = dlopen("libvulkan.so.1", RTLD_NOW | RTLD_LOCAL);
  if (loader == nullptr)
    return fail(ErrorCode::kNotFound,
                "[gpu] the Vulkan loader libvulkan.so.1 was wanted, it is not installed; "
                "`apt install libvulkan1`");
#endif
  DriverChoice choice;
  // Mesa's device-selection layer orders adapters, which we do ourselves, and prints complaints about
  // Wayland.
  choice.set("NODEVICE_SELECT", "1");
  if (device_name != "lavapipe" && device_name != "swiftshader") return choice;
  if (is_set(kVariables[0]) || is_set(kVariables[1])) return choice;
  const std::string file = software_driver_file(device_name);
  if (file.empty())
    return fail(ErrorCode::kNotFound,
                "[gpu] the software driver {} was wanted, it is not installed; `apt install {}`", device_name,
                device_name == "lavapipe" ? "mesa-vulkan-drivers" : "chromium");
  for (const char* variable : kVariables) choice.set(variable, file);
  return choice;
}

void DriverChoice::set(const char* variable, const std::string& value) {
  if (std::getenv(variable) != nullptr) return;
  setenv(variable, value.c_str(), /*overwrite=*/1);
  set_.push_back(variable);
}

DriverChoice::~DriverChoice() {
  for (const char* variable : set_) unsetenv(variable);
}

}  // namespace doppler::gpu
