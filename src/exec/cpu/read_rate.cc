#include "exec/cpu/read_rate.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <memory>

namespace doppler::cpu {

double read_rate(ThreadPool& pool) {
  constexpr size_t kWords = (256u << 20) / sizeof(uint64_t), kPiece = 1u << 17;
  const auto words = std::make_unique_for_overwrite<uint64_t[]>(kWords);
  pool.parallel_for(kWords / kPiece, 1, [&](size_t begin, size_t end) {
    std::fill(words.get() + begin * kPiece, words.get() + end * kPiece, 1);
  });
  std::atomic<uint64_t> total = 0;
  double best = 0;
  for (int run = 0; run < 4; ++run) {
    const auto start = std::chrono::steady_clock::now();
    pool.parallel_for(kWords / kPiece, 1, [&](size_t begin, size_t end) {
      uint64_t sums[8] = {};
      for (const uint64_t* at = words.get() + begin * kPiece; at < words.get() + end * kPiece; at += 8)
        for (int i = 0; i < 8; ++i) sums[i] += at[i];
      for (const uint64_t sum : sums) total += sum;
    });
    const double ns =
        std::chrono::duration<double, std::nano>(std::chrono::steady_clock::now() - start).count();
    best = std::max(best, static_cast<double>(kWords * sizeof(uint64_t)) / ns);
  }
  return total > 0 ? best : 0;
}

}  // namespace doppler::cpu
