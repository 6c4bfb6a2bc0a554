#include "gpu/native/api.h"

#include <dlfcn.h>

#include <cstdlib>
#include <filesystem>
#include <vector>

#include "base/log.h"

namespace doppler::gpu {
namespace {

namespace fs = std::filesystem;

#ifdef __APPLE__
constexpr std::string_view kDawn = "libwebgpu_dawn.dylib";
constexpr std::string_view kNative[] = {"libwgpu_native.dylib", "libwgpu_native-release.dylib"};
#else
constexpr std::string_view kDawn = "libwebgpu_dawn.so";
constexpr std::string_view kNative[] = {"libwgpu_native.so", "libwgpu_native-release.so"};
#endif

// The program's folder, or that of the library this code was linked into.
fs::path program_folder() {
  Dl_info info{};
  std::error_code ignored;
  fs::path program = fs::read_symlink("/proc/self/exe", ignored);
  if (program.empty() && dladdr(reinterpret_cast<const void*>(&load_api), &info) != 0)
    program = info.dli_fname;
  return program.parent_path();
}

std::vector<std::string> candidates() {
  std::vector<std::string> paths;
  const fs::path beside = program_folder();
  if (!beside.empty()) paths.push_back(beside / kDawn);
  for (std::string_view name : kNative) paths.push_back(fs::path(DOPPLER_WEBGPU_DIR) / name);
  if (!beside.empty())
    for (std::string_view name : kNative) paths.push_back(beside / name);
  return paths;
}

Result<std::string> choose_library(const std::string& requested) {
  std::error_code ignored;
  if (!requested.empty()) return requested;
  if (const char* path = std::getenv("DOPPLER_WEBGPU"); path != nullptr && *path != '\0')
    return std::string(path);
  std::string tried;
  for (const std::string& path : candidates()) {
    if (fs::exists(path, ignored)) return path;
    tried += tried.empty() ? path : ", " + path;
  }
  return fail(
      ErrorCode::kNotFound,
      "[gpu] a WebGPU library was wanted, none is at {}; run `make setup`, or set DOPPLER_WEBGPU to the path "
      "of libwgpu_native or libwebgpu_dawn",
      tried);
}

void on_library_log(WGPULogLevel level, WGPUStringView message, void*) {
  // The library reports as errors what it also returns to us; they are only worth showing when looking
  // closely.
  log(level == WGPULogLevel_Error ? LogLevel::kInfo : LogLevel::kDebug, "[webgpu] {}", text(message));
}

}  // namespace

Result<std::shared_ptr<const Api>> load_api(const std::string& requested) {
  DOPPLER_TRY(const std::string path, choose_library(requested));
  void* handle = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (handle == nullptr) {
    const char* why = dlerror();
    return fail(ErrorCode::kNotFound, "[gpu] the WebGPU library {} cannot be loaded: {}", path,
                why != nullptr ? why : "unknown reason");
  }
  auto api = std::make_shared<Api>();
  api->path = path;
  std::string missing;
#define DOPPLER_FIND(name) api->name = reinterpret_cast<decltype(api->name)>(dlsym(handle, "wgpu" #name));
#define DOPPLER_FIND_REQUIRED(name) \
  DOPPLER_FIND(name)                \
  if (api->name == nullptr) missing += " wgpu" #name;
  DOPPLER_WEBGPU_REQUIRED(DOPPLER_FIND_REQUIRED)
  DOPPLER_WEBGPU_OPTIONAL(DOPPLER_FIND)
#undef DOPPLER_FIND_REQUIRED
#undef DOPPLER_FIND
  if (!missing.empty()) {
    dlclose(handle);
    return fail(
        ErrorCode::kUnsupported,
        "[gpu] {} is not a WebGPU library of the current webgpu.h, it lacks{}; use wgpu-native 29 or a Dawn "
        "of 2026",
        path, missing);
  }
  api->dawn = api->DevicePoll == nullptr;
  if (api->SetLogCallback != nullptr && api->SetLogLevel != nullptr) {
    api->SetLogCallback(on_library_log, nullptr);
    api->SetLogLevel(log_level() == LogLevel::kDebug ? WGPULogLevel_Info : WGPULogLevel_Error);
  }
  return std::shared_ptr<const Api>(std::move(api));
}

}  // namespace doppler::gpu
