#include "base/thread_pool.h"

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <thread>
#include <vector>

#if defined(__x86_64__) || defined(__i386__)
#include <immintrin.h>
#endif

namespace doppler {
namespace {

void relax() {
#if defined(__x86_64__) || defined(__i386__)
  _mm_pause();
#elif defined(__aarch64__)
  asm volatile("yield");
#endif
}

// About 20 to 50 us: longer than the gap between two ops of a model, shorter than a scheduler slice.
constexpr int kSpins = 1000;

/// Waits until `value` is no longer `old`: spins a little, then sleeps in the kernel.
void wait_while(const std::atomic<uint32_t>& value, uint32_t old) {
  for (int i = 0; i < kSpins; ++i) {
    if (value.load(std::memory_order_acquire) != old) return;
    relax();
  }
  value.wait(old, std::memory_order_acquire);
}

}  // namespace

struct ThreadPool::State {
  using Body = std::function<void(size_t, size_t)>;

  // Written by the caller before `round` rises, read by workers after they saw it rise.
  const Body* body = nullptr;
  size_t count = 0;
  size_t parts = 0;
  bool stopping = false;
  alignas(64) std::atomic<uint32_t> round{0};
  alignas(64) std::atomic<uint32_t> working{0};  // workers that have not finished this round
  std::vector<std::jthread> workers;             // last: joined before the rest is destroyed

  /// Part `index` of `parts`, whose sizes differ by at most one.
  void run_part(size_t index) const {
    const size_t whole = count / parts, extra = count % parts;
    const size_t begin = index * whole + std::min(index, extra);
    (*body)(begin, begin + whole + (index < extra ? 1 : 0));
  }

  void work(size_t index) {
    for (uint32_t seen = 0;; ++seen) {
      wait_while(round, seen);
      if (stopping) return;
      if (index < parts) run_part(index);
      if (working.fetch_sub(1, std::memory_order_acq_rel) == 1) working.notify_one();
    }
  }
};

ThreadPool::ThreadPool(unsigned threads) : state_(std::make_unique<State>()) {
  if (threads == 0) threads = usable_cores();
  for (unsigned i = 1; i < threads; ++i)
    state_->workers.emplace_back([state = state_.get(), i] { state->work(i); });
}

ThreadPool::~ThreadPool() {
  state_->stopping = true;
  state_->round.fetch_add(1, std::memory_order_release);
  state_->round.notify_all();
}

unsigned ThreadPool::size() const { return static_cast<unsigned>(state_->workers.size()) + 1; }

void ThreadPool::parallel_for(size_t count, size_t grain,
                              const std::function<void(size_t begin, size_t end)>& body) {
  if (count == 0) return;
  const size_t parts = std::clamp<size_t>(count / std::max<size_t>(grain, 1), 1, size());
  if (parts == 1) return body(0, count);
  State& state = *state_;
  state.body = &body;
  state.count = count;
  state.parts = parts;
  state.working.store(static_cast<uint32_t>(state.workers.size()), std::memory_order_relaxed);
  state.round.fetch_add(1, std::memory_order_release);
  state.round.notify_all();
  state.run_part(0);
  for (;;) {
    const uint32_t left = state.working.load(std::memory_order_acquire);
    if (left == 0) return;
    wait_while(state.working, left);
  }
}

}  // namespace doppler
