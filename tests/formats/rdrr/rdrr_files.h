#pragma once
// Shared by the RDRR tests: temporary directories, small written models, files to damage.
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <random>
#include <span>
#include <string>
#include <vector>

#include "formats/rdrr/writer.h"

namespace doppler::test {

/// A directory that goes away with the object.
class TemporaryDirectory {
 public:
  TemporaryDirectory() {
    std::string name = (std::filesystem::temp_directory_path() / "doppler-rdrr-XXXXXX").string();
    path_ = ::mkdtemp(name.data());
  }
  ~TemporaryDirectory() {
    std::error_code error;
    std::filesystem::remove_all(path_, error);
  }
  std::string operator/(const std::string& name) const { return path_ + "/" + name; }
  const std::string& path() const { return path_; }

 private:
  std::string path_;
};

inline std::string golden_rdrr(const std::string& name) {
  return std::string(DOPPLER_GOLDEN_DIR) + "/rdrr-original/" + name;
}

inline std::string slurp(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  return std::string(std::istreambuf_iterator<char>(in), {});
}

inline void spill(const std::string& path, const std::string& text) {
  std::ofstream(path, std::ios::binary) << text;
}

inline void replace_once(std::string& text, const std::string& from, const std::string& to) {
  const size_t at = text.find(from);
  if (at != std::string::npos) text.replace(at, from.size(), to);
}

inline void copy_model(const std::string& from, const std::string& to) {
  std::filesystem::copy(from, to, std::filesystem::copy_options::recursive);
}

inline void flip_byte(const std::string& path, uint64_t at) {
  std::fstream file(path, std::ios::binary | std::ios::in | std::ios::out);
  file.seekg(static_cast<std::streamoff>(at));
  const char byte = static_cast<char>(file.get());
  file.seekp(static_cast<std::streamoff>(at));
  file.put(static_cast<char>(byte ^ 1));
}

inline std::vector<std::byte> random_bytes(uint64_t seed, size_t count) {
  std::mt19937_64 random(seed);
  std::vector<std::byte> out(count);
  for (std::byte& byte : out) byte = static_cast<std::byte>(random());
  return out;
}

/// A manifest with everything a text model needs; the writer fills in shards and tensors.
inline rdrr::Manifest small_manifest() {
  rdrr::Manifest manifest;
  manifest.model_id = "small";
  manifest.model_type = "transformer";
  manifest.quantization = "F16";
  manifest.eos_ids = {1};
  manifest.architecture = rdrr::Architecture{.layers = 1,
                                             .hidden = 8,
                                             .intermediate = 8,
                                             .heads = 1,
                                             .kv_heads = 1,
                                             .head_dim = 8,
                                             .vocab = 8,
                                             .max_seq_len = 8,
                                             .extra = {}};
  manifest.inference.ffn.activation = "silu";
  return manifest;
}

}  // namespace doppler::test
