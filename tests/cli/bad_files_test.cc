// Damaged models: one clear error, little time, little memory.
#include <filesystem>

#include "run_binary.h"
#include "support/files.h"
#include "support/gguf_faults.h"

namespace doppler::test {
namespace {

void check_refused(const std::string& path) {
  CAPTURE(path);
  const Ran ran = run_doppler({"run", path, "hello", "--max-tokens", "1", "--device", "cpu"});
  CHECK(ran.exit_code == 1);
  CHECK(ran.out.empty());
  CHECK(ran.one_error_line());
  CHECK(ran.cpu_seconds < 2);
  CHECK(ran.max_rss_bytes < 200l << 20);
}

TEST_CASE("files that are no models") {
  size_t count = 0;
  for (const auto& entry : std::filesystem::directory_iterator(DOPPLER_GOLDEN_DIR "/bad-gguf")) {
    if (entry.path().extension() != ".gguf") continue;
    check_refused(entry.path().string());
    ++count;
  }
  CHECK(count == 31);
}

TEST_CASE("valid models with one fault each") {
  const TempDir dir;
  for (const Fault& fault : gguf_faults()) {
    CAPTURE(fault.name);
    const std::string path = dir.file(fault.name + ".gguf");
    write_bytes(path, fault.bytes);
    check_refused(path);
  }
}

}  // namespace
}  // namespace doppler::test
