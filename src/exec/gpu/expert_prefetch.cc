#include "exec/gpu/expert_prefetch.h"

#include <algorithm>
#include <utility>

namespace doppler::gpu_exec {

ExpertPrefetch::ExpertPrefetch(const graph::Graph& graph, const std::vector<ExpertLayer>& layers,
                               const graph::WeightSource& source)
    : graph_(graph), layers_(layers), source_(source), thread_([this] { work(); }) {}

ExpertPrefetch::~ExpertPrefetch() {
  {
    const std::lock_guard lock(mutex_);
    stop_ = true;
  }
  wake_.notify_all();
  thread_.join();
}

void ExpertPrefetch::want(std::vector<ExpertKey> keys) {
  {
    const std::lock_guard lock(mutex_);
    items_.clear();
    for (const ExpertKey key : keys) {
      items_.push_back(std::make_shared<Item>());
      items_.back()->key = key;
    }
  }
  wake_.notify_all();
}

std::optional<PackedExpert> ExpertPrefetch::take(ExpertKey key) {
  std::unique_lock lock(mutex_);
  const auto found = std::find_if(items_.begin(), items_.end(),
                                  [key](const std::shared_ptr<Item>& item) { return item->key == key; });
  if (found == items_.end()) return std::nullopt;
  const std::shared_ptr<Item> item = *found;
  items_.erase(found);
  if (!item->begun) return std::nullopt;
  finished_.wait(lock, [&] { return item->done; });
  return std::move(item->packed);
}

void ExpertPrefetch::work() {
  std::unique_lock lock(mutex_);
  for (;;) {
    std::shared_ptr<Item> next;
    wake_.wait(lock, [&] {
      for (const std::shared_ptr<Item>& item : items_)
        if (!item->begun) {
          next = item;
          return true;
        }
      return stop_;
    });
    if (stop_) return;
    next->begun = true;
    lock.unlock();
    Result<PackedExpert> packed = pack_expert(graph_, layers_[next->key.layer], next->key.expert, source_);
    lock.lock();
    if (packed) next->packed = std::move(*packed);  // an error is met again, and told, when it is asked for
    next->done = true;
    finished_.notify_all();
  }
}

}  // namespace doppler::gpu_exec
