// Tiny models of every family, straight from their Hugging Face folders, against transformers' numbers.
#include "families_check.h"

namespace doppler::test {
namespace {

TEST_CASE("sixteen tiny families give transformers' logits, hidden states and greedy ids") {
  const std::vector<fs::path> folders = families_of("seed-9");
  for (const fs::path& folder : folders) check_family(folder);
  CHECK(folders.size() == 16);
}

TEST_CASE("tiny families of other dimensions do too") {
  const std::vector<fs::path> folders = families_of("seed-25");
  for (const fs::path& folder : folders) check_family(folder);
  CHECK(folders.size() >= 6);
}

}  // namespace
}  // namespace doppler::test
