#include "base/thread_pool.h"

#include <doctest/doctest.h>

#include <atomic>
#include <chrono>
#include <filesystem>
#include <mutex>
#include <thread>
#include <vector>

#include "base/cpu_count.h"
#include "support/files.h"

using namespace doppler;

TEST_CASE("parallel_for visits every index once, in at most one part a thread, none below the grain") {
  for (const unsigned threads : {1u, 2u, 3u, 7u}) {
    ThreadPool pool(threads);
    CHECK(pool.size() == threads);
    for (const size_t count : {0u, 1u, 2u, 6u, 7u, 8u, 100u, 1001u})
      for (const size_t grain : {0u, 1u, 5u, 2000u}) {
        CAPTURE(threads);
        CAPTURE(count);
        CAPTURE(grain);
        std::vector<std::atomic<int>> visits(count);
        std::atomic<size_t> parts{0}, least{count};
        pool.parallel_for(count, grain, [&](size_t begin, size_t end) {
          ++parts;
          size_t seen = least;
          while (end - begin < seen && !least.compare_exchange_weak(seen, end - begin)) {
          }
          for (size_t i = begin; i < end; ++i) ++visits[i];
        });
        for (const auto& v : visits) CHECK(v == 1);
        CHECK(parts <= threads);
        CHECK(least >= std::min(count, grain));
      }
  }
}

TEST_CASE("many short loops, some after a sleep, lose no part") {
  ThreadPool pool(4);
  std::atomic<uint64_t> sum{0};
  uint64_t wanted = 0;
  for (size_t round = 0; round < 3000; ++round) {
    const size_t count = round % 9;
    pool.parallel_for(count, 1, [&](size_t begin, size_t end) { sum += end - begin; });
    wanted += count;
    if (round % 500 == 0) std::this_thread::sleep_for(std::chrono::milliseconds(2));
  }
  CHECK(sum == wanted);
}

TEST_CASE("parts run on different threads at the same time") {
  ThreadPool pool(2);
  std::atomic<int> arrived{0};
  const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(20);
  pool.parallel_for(2, 1, [&](size_t, size_t) {  // each waits for the other: serial parts would time out
    ++arrived;
    while (arrived < 2 && std::chrono::steady_clock::now() < deadline) std::this_thread::yield();
  });
  CHECK(std::chrono::steady_clock::now() < deadline);
}

TEST_CASE("a pool may be made and dropped without work") {
  for (int i = 0; i < 50; ++i) ThreadPool pool(3);
  CHECK(usable_cores() >= 1);
  CHECK(ThreadPool().size() == usable_cores());
}

TEST_CASE("cgroup quotas of both versions bound the cores") {
  const test::TempDir dir;
  const std::string mount = dir.path().string();
  const auto put = [&](const std::string& folder, const std::string& file, const std::string& text) {
    std::filesystem::create_directories(mount + folder);
    test::write_text(mount + folder + "/" + file, text);
  };
  CHECK_FALSE(cgroup_cores("0::/a/b\n", mount).has_value());  // no files at all
  put("/a/b", "cpu.max", "max 100000\n");
  CHECK_FALSE(cgroup_cores("0::/a/b\n", mount).has_value());
  put("/a", "cpu.max", "350000 100000\n");  // a parent's quota holds for its children; 3.5 rounds up
  CHECK(cgroup_cores("0::/a/b\n", mount) == 4u);
  put("/a/b", "cpu.max", "50000 100000\n");
  CHECK(cgroup_cores("0::/a/b\n", mount) == 1u);
  CHECK(cgroup_cores("0::/a\n", mount) == 4u);
  put("", "cpu.max", "200000 100000\n");  // a container sees its own group at the root
  CHECK(cgroup_cores("0::/docker/not-visible\n", mount) == 2u);
  put("/a/b", "cpu.max", "garbage");
  CHECK(cgroup_cores("0::/a/b\n", mount) == 2u);

  put("/cpu,cpuacct/x", "cpu.cfs_quota_us", "300000\n");
  put("/cpu,cpuacct/x", "cpu.cfs_period_us", "100000\n");
  CHECK(cgroup_cores("5:memory:/x\n4:cpu,cpuacct:/x\n", mount) == 3u);
  put("/cpu,cpuacct/x", "cpu.cfs_quota_us", "-1\n");
  CHECK_FALSE(cgroup_cores("4:cpu,cpuacct:/x\n", mount).has_value());
  CHECK_FALSE(cgroup_cores("nonsense\n4:cpuset:/x", mount).has_value());
}
