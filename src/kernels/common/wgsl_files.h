#pragma once
// The embedded shader sources; tools/embed_wgsl.py writes the definition at build time.
#include <string_view>
#include <vector>

namespace doppler::kernels {

struct WgslFile {
  std::string_view path;  // "linear/matvec.wgsl"
  std::string_view text;
};

const std::vector<WgslFile>& wgsl_files();

}  // namespace doppler::kernels
