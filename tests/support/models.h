#pragma once
// Where set-up puts the real models.
#include <doctest/doctest.h>

#include <cstdlib>
#include <filesystem>
#include <string>

namespace doppler::test {

/// Path of a model file in DOPPLER_MODELS, or else in the cache that `doppler pull` fills. Fails the test if
/// it is not there.
inline std::string model_path(const std::string& file_name) {
  const auto variable = [](const char* name) {
    const char* value = std::getenv(name);
    return std::string(value == nullptr ? "" : value);
  };
  std::string folder = variable("DOPPLER_MODELS");
  if (folder.empty()) {
    const std::string xdg = variable("XDG_CACHE_HOME"), cache = variable("DOPPLER_CACHE");
    folder = (!cache.empty() ? cache : (xdg.empty() ? variable("HOME") + "/.cache" : xdg) + "/doppler") +
             "/models";
  }
  const std::string path = folder + "/" + file_name;
  REQUIRE_MESSAGE(std::filesystem::exists(path),
                  path << " is missing: run `make models`, or set DOPPLER_MODELS");
  return path;
}

}  // namespace doppler::test
