#pragma once
// Reads and packs experts on a thread of its own, before they are asked for.
#include <condition_variable>
#include <memory>
#include <mutex>
#include <optional>
#include <thread>
#include <vector>

#include "exec/gpu/expert_pools.h"
#include "exec/gpu/expert_slots.h"

namespace doppler::gpu_exec {

class ExpertPrefetch {
 public:
  /// All three must outlive it.
  ExpertPrefetch(const graph::Graph& graph, const std::vector<ExpertLayer>& layers,
                 const graph::WeightSource& source);
  ~ExpertPrefetch();
  ExpertPrefetch(const ExpertPrefetch&) = delete;
  ExpertPrefetch& operator=(const ExpertPrefetch&) = delete;

  /// These are wanted soon, in this order, and nothing else: what was wanted before is dropped. Host memory
  /// holds no more than these and the one being packed.
  void want(std::vector<ExpertKey> keys);

  /// The packed expert if it was wanted and its packing has begun, waiting for its end; else, or if that
  /// failed, nullopt, and it is no longer wanted.
  std::optional<PackedExpert> take(ExpertKey key);

 private:
  struct Item {
    ExpertKey key;
    bool begun = false, done = false;
    std::optional<PackedExpert> packed;
  };
  void work();

  const graph::Graph& graph_;
  const std::vector<ExpertLayer>& layers_;
  const graph::WeightSource& source_;
  std::mutex mutex_;
  std::condition_variable wake_, finished_;
  std::vector<std::shared_ptr<Item>> items_;  // the thread holds the one it works on
  bool stop_ = false;
  std::thread thread_;  // last: it uses all else
};

}  // namespace doppler::gpu_exec
