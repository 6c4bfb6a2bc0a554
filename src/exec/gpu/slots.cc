#include "exec/gpu/slots.h"

#include <algorithm>

namespace doppler::gpu_exec {
namespace {

using graph::kNone;

// The values a step reads and those it writes.
struct Touched {
  std::vector<graph::ValueId> in, out;
};

Touched touched(const graph::Graph& graph, const Step& step) {
  const graph::Node& node = graph.nodes[step.node];
  Touched values;
  if (step.kind == StepKind::kExpertGroup) {  // reads what its node wrote, writes a buffer of its own
    values.in.push_back(node.out.value);
    return values;
  }
  for (const graph::View& view : {node.in, node.in2})
    if (view.value != kNone) values.in.push_back(view.value);
  if (step.kind == StepKind::kQuantizeAct || step.kind == StepKind::kExpertQuantize)
    return values;  // writes a buffer of its own
  if (node.out.value != kNone) values.out.push_back(node.out.value);
  if (step.norm_node != kNone) values.out.push_back(graph.nodes[step.norm_node].out.value);
  return values;
}

class Allocator {
 public:
  explicit Allocator(SlotPlan& plan) : plan_(plan) {}

  /// The free slot that wastes least, or the one that has to grow least, or a new one.
  uint32_t take(uint64_t bytes) {
    uint32_t best = kNone;
    for (uint32_t slot = 0; slot < free_.size(); ++slot)
      if (free_[slot] && (best == kNone || waste(slot, bytes) < waste(best, bytes))) best = slot;
    if (best == kNone) {
      best = static_cast<uint32_t>(free_.size());
      free_.push_back(true);
      plan_.slot_bytes.push_back(0);
    }
    free_[best] = false;
    plan_.slot_bytes[best] = std::max(plan_.slot_bytes[best], bytes);
    return best;
  }
  void give_back(uint32_t slot) { free_[slot] = true; }

 private:
  uint64_t waste(uint32_t slot, uint64_t bytes) const {
    const uint64_t has = plan_.slot_bytes[slot];
    return has >= bytes ? has - bytes : bytes - has;
  }
  SlotPlan& plan_;
  std::vector<bool> free_;
};

// The last step of those that are repeated together with step i.
size_t end_of_repeat(const std::vector<const Step*>& steps, size_t i) {
  const uint32_t layer = steps[i]->expert_layer;
  while (layer != kNone && i + 1 < steps.size() && steps[i + 1]->expert_layer == layer) ++i;
  return i;
}

}  // namespace

SlotPlan plan_slots(const graph::Graph& graph, const Plan& plan, uint32_t max_rows, uint32_t max_selected,
                    bool repeated_experts) {
  std::vector<const Step*> steps;
  for (const Step& step : plan.body) steps.push_back(&step);
  const size_t head_start = steps.size();
  for (const Step& step : plan.head) steps.push_back(&step);

  constexpr size_t kForever = SIZE_MAX;
  std::vector<size_t> last_use(graph.values.size(), 0);
  std::vector<bool> made_by_body(graph.values.size(), false);
  for (size_t i = 0; i < steps.size(); ++i) {
    const Touched values = touched(graph, *steps[i]);
    const size_t until = repeated_experts ? end_of_repeat(steps, i) : i;
    for (graph::ValueId id : values.in)
      last_use[id] = i >= head_start && made_by_body[id] ? kForever : std::max(last_use[id], until);
    for (graph::ValueId id : values.out) {
      last_use[id] = std::max(last_use[id], until);
      if (i < head_start) made_by_body[id] = true;
    }
  }
  if (graph.logits.value != kNone) last_use[graph.logits.value] = kForever;

  std::vector<std::vector<graph::ValueId>> last_used(steps.size());
  for (graph::ValueId id = 0; id < graph.values.size(); ++id)
    if (last_use[id] < steps.size()) last_used[last_use[id]].push_back(id);

  SlotPlan slots;
  slots.slot_of.assign(graph.values.size(), kNone);
  Allocator allocator(slots);
  for (size_t i = 0; i < steps.size(); ++i) {
    for (graph::ValueId id : touched(graph, *steps[i]).out) {
      if (slots.slot_of[id] != kNone) continue;
      const graph::Value& value = graph.values[id];
      slots.slot_of[id] =
          allocator.take(uint64_t{value.width} * (value.selected ? max_selected : max_rows) * 4);
    }
    for (graph::ValueId id : last_used[i])
      if (slots.slot_of[id] != kNone) allocator.give_back(slots.slot_of[id]);
  }
  return slots;
}

}  // namespace doppler::gpu_exec
