// Greedy continuations of the two real models on the CPU.
#include "greedy_check.h"

namespace doppler::test {

TEST_CASE("gemma 3 270m continues as its f32 reference") {
  Runner runner(gemma(), Precision::kExact);
  check_against(runner, "greedy-gemma-f32.json");
}

TEST_CASE("smollm2 135m continues as its f32 reference") {
  Runner runner(smollm2(), Precision::kExact);
  check_against(runner, "greedy-smollm2-f32.json");
}

}  // namespace doppler::test
