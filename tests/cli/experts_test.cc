// --expert-memory on a tiny mixture of experts.
#include "run_binary.h"

namespace doppler::test {
namespace {

using Args = std::vector<std::string>;

Args run_ids(const std::string& device, Args more) {
  Args all = {"run",           DOPPLER_TINY_DIR "/seed-9/gpt-oss-mxfp4",
              "--prompt-ids",  "5,17,2,40,9",
              "--temperature", "0",
              "--max-tokens",  "8",
              "--precision",   "exact",
              "--device",      device,
              "--json"};
  all.insert(all.end(), more.begin(), more.end());
  return all;
}

TEST_CASE("--expert-memory: the same ids, and counters in the timings") {
  const auto resident = run_doppler(run_ids("lavapipe", {})).json();
  CHECK_FALSE(resident["timings"].contains("experts"));
  const Ran ran = run_doppler(run_ids("lavapipe", {"--expert-memory", "1G"}));
  REQUIRE(ran.exit_code == 0);
  const auto all = ran.json();
  CHECK(all["ids"] == resident["ids"]);
  const auto& stats = all["timings"]["experts"];
  CHECK(stats["slots"] == stats["slots_wanted"]);
  CHECK(stats["hits"].get<uint64_t>() > 0);
  CHECK(stats["misses"].get<uint64_t>() <= stats["slots"].get<uint64_t>());

  const std::string half = std::to_string(stats["slot_bytes"].get<uint64_t>() / 2);
  const auto less = run_doppler(run_ids("lavapipe", {"--expert-memory", half})).json();
  CHECK(less["ids"] == resident["ids"]);
  const auto& counted = less["timings"]["experts"];
  CHECK(counted["slots"].get<uint64_t>() == stats["slots"].get<uint64_t>() / 2);
  CHECK(counted["hits"].get<uint64_t>() + counted["misses"].get<uint64_t>() ==
        stats["hits"].get<uint64_t>() + stats["misses"].get<uint64_t>());

  const Ran refused = run_doppler(run_ids("lavapipe", {"--expert-memory", "100"}));
  CHECK(refused.exit_code == 1);
  CHECK(refused.one_error_line());
  CHECK(refused.err.find("--expert-memory") != std::string::npos);
}

TEST_CASE("--expert-memory on the CPU is accepted and said to be without effect") {
  const auto without = run_doppler(run_ids("cpu", {})).json();
  const Ran ran = run_doppler(run_ids("cpu", {"--expert-memory", "1M"}));
  CHECK(ran.exit_code == 0);
  CHECK(ran.json()["ids"] == without["ids"]);
  CHECK(ran.err.find("without effect") != std::string::npos);
}

TEST_CASE("--expert-memory takes sizes alone") {
  for (const std::string wrong : {"0", "x", "4X", "-1", "4.5G", "99999999999999G"}) {
    CAPTURE(wrong);
    CHECK(run_doppler(run_ids("cpu", {"--expert-memory", wrong})).exit_code == 2);
  }
}

}  // namespace
}  // namespace doppler::test
