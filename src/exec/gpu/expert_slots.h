#pragma once
// Which expert of which layer is in which slot of a pool; the one unused for longest gives way.
#include <cstdint>
#include <unordered_map>
#include <vector>

#include "graph/graph.h"

namespace doppler::gpu_exec {

struct ExpertKey {
  uint32_t layer = graph::kNone, expert = 0;
  bool operator==(const ExpertKey&) const = default;
};

class ExpertSlots {
 public:
  explicit ExpertSlots(uint32_t slots) : slots_(slots) {}

  uint32_t count() const { return static_cast<uint32_t>(slots_.size()); }
  /// Its slot, or kNone. Changes nothing.
  uint32_t find(ExpertKey key) const;
  /// It is in use now: the last to give way.
  void touch(uint32_t slot) { slots_[slot].used = ++clock_; }
  /// Keeps a slot from giving way until unpin_all().
  void pin(uint32_t slot) { slots_[slot].pinned = true; }
  void unpin_all();
  /// Empties the slot that is free or unused for longest; kNone if all are pinned.
  uint32_t take();
  void put(uint32_t slot, ExpertKey key);

 private:
  struct Slot {
    ExpertKey key;
    uint64_t used = 0;  // 0: free
    bool pinned = false;
  };
  static uint64_t number(ExpertKey key) { return uint64_t{key.layer} << 32 | key.expert; }
  std::vector<Slot> slots_;
  std::unordered_map<uint64_t, uint32_t> slot_of_;  // by number()
  uint64_t clock_ = 0;
};

}  // namespace doppler::gpu_exec
