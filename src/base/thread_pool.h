#pragma once
// Fork-join parallel loops over a fixed set of threads.
#include <cstddef>
#include <functional>
#include <memory>

namespace doppler {

class ThreadPool {
 public:
  /// `threads` in all, the calling one included; 0 takes the cores this process may use (affinity and
  /// cgroup).
  explicit ThreadPool(unsigned threads = 0);
  ~ThreadPool();
  ThreadPool(const ThreadPool&) = delete;
  ThreadPool& operator=(const ThreadPool&) = delete;

  unsigned size() const;

  /// Calls body(begin, end) over contiguous parts of [0, count), at most one part a thread and none shorter
  /// than `grain`, and waits for all. Not re-entrant: one loop at a time, from one thread.
  void parallel_for(size_t count, size_t grain, const std::function<void(size_t begin, size_t end)>& body);

 private:
  struct State;
  std::unique_ptr<State> state_;
};

unsigned usable_cores();

}  // namespace doppler
