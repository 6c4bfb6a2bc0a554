#include "exec/cpu/buffers.h"

#include <algorithm>
#include <new>

namespace doppler::cpu {

BufferPlan plan_buffers(const graph::Graph& graph) {
  std::vector<size_t> last_use(graph.values.size(), 0);
  for (size_t i = 0; i < graph.nodes.size(); ++i) {
    const graph::Node& node = graph.nodes[i];
    for (const graph::View& view : {node.in, node.in2, node.out})
      if (view.value != graph::kNone) last_use[view.value] = i;
  }

  BufferPlan plan;
  plan.slot_of.assign(graph.values.size(), graph::kNone);
  std::vector<bool> free;
  const auto take = [&](uint32_t width) {
    uint32_t best = graph::kNone;
    for (uint32_t slot = 0; slot < free.size(); ++slot) {
      if (!free[slot]) continue;
      const auto fits = [&](uint32_t s) { return plan.slot_width[s] >= width; };
      const bool better =
          best == graph::kNone || (fits(slot) && !fits(best)) ||
          (fits(slot) == fits(best) && (fits(slot) ? plan.slot_width[slot] < plan.slot_width[best]
                                                   : plan.slot_width[slot] > plan.slot_width[best]));
      if (better) best = slot;
    }
    if (best == graph::kNone) {
      best = static_cast<uint32_t>(free.size());
      free.push_back(true);
      plan.slot_width.push_back(0);
    }
    free[best] = false;
    plan.slot_width[best] = std::max(plan.slot_width[best], width);
    return best;
  };

  for (size_t i = 0; i < graph.nodes.size(); ++i) {
    const graph::Node& node = graph.nodes[i];
    const graph::ValueId out = node.out.value;
    if (out != graph::kNone && out != graph.logits.value && plan.slot_of[out] == graph::kNone)
      plan.slot_of[out] = take(graph.values[out].width);
    for (const graph::View& view : {node.in, node.in2, node.out})
      if (view.value != graph::kNone && last_use[view.value] == i && plan.slot_of[view.value] != graph::kNone)
        free[plan.slot_of[view.value]] = true;
  }
  return plan;
}

Result<void> Buffers::reserve(uint32_t rows) {
  if (rows <= rows_) return {};
  for (size_t slot = 0; slot < slots_.size(); ++slot) {
    const uint64_t count = static_cast<uint64_t>(plan_.slot_width[slot]) * rows;
    slots_[slot].reset();  // before the larger one is taken
    slots_[slot].reset(new (std::nothrow) float[count]);
    if (!slots_[slot]) {
      rows_ = 0;
      return fail(ErrorCode::kOutOfMemory,
                  "[cpu] {} bytes of activations for {} tokens wanted, memory is full; lower --chunk",
                  count * sizeof(float), rows);
    }
  }
  rows_ = rows;
  return {};
}

uint64_t Buffers::size_bytes() const {
  uint64_t per_row = 0;
  for (const uint32_t width : plan_.slot_width) per_row += width;
  return per_row * rows_ * sizeof(float);
}

}  // namespace doppler::cpu
