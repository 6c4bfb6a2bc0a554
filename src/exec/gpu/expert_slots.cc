#include "exec/gpu/expert_slots.h"

namespace doppler::gpu_exec {

uint32_t ExpertSlots::find(ExpertKey key) const {
  const auto found = slot_of_.find(number(key));
  return found == slot_of_.end() ? graph::kNone : found->second;
}

void ExpertSlots::unpin_all() {
  for (Slot& slot : slots_) slot.pinned = false;
}

uint32_t ExpertSlots::take() {
  uint32_t best = graph::kNone;
  for (uint32_t i = 0; i < slots_.size(); ++i)
    if (!slots_[i].pinned && (best == graph::kNone || slots_[i].used < slots_[best].used)) best = i;
  if (best == graph::kNone) return best;
  if (slots_[best].used != 0) slot_of_.erase(number(slots_[best].key));
  slots_[best] = {};
  return best;
}

void ExpertSlots::put(uint32_t slot, ExpertKey key) {
  slots_[slot].key = key;
  slot_of_[number(key)] = slot;
  touch(slot);
}

}  // namespace doppler::gpu_exec
