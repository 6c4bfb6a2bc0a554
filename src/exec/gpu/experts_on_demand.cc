#include "exec/gpu/experts_on_demand.h"

#include <algorithm>

namespace doppler::gpu_exec {

using graph::kNone;

ExpertsOnDemand::ExpertsOnDemand(gpu::Device& device, const graph::Graph& graph, const StaticPlan& fixed,
                                 const Recorder& recorder, const Workspace& work, ExpertPools& pools,
                                 const graph::WeightSource& source)
    : device_(device),
      graph_(graph),
      fixed_(fixed),
      recorder_(recorder),
      work_(work),
      pools_(pools),
      source_(source),
      recent_(fixed.expert_layers.size()),
      prefetch_(graph, fixed.expert_layers, source) {
  for (const ExpertPool& pool : fixed.expert_pools) {
    slots_.emplace_back(pool.slots);
    stats_.slots += pool.slots;
    stats_.slots_wanted += pool.experts;
    stats_.slot_bytes += pool.slots * pool.slot_bytes;
  }
}

Result<void> ExpertsOnDemand::run(const std::vector<Step>& steps, const Pass& pass, std::string_view label,
                                  const AfterStep& after) {
  size_t begin = 0;
  for (size_t i = 0; i < steps.size(); ++i) {
    if (steps[i].kind != StepKind::kRoute) continue;
    const uint32_t layer = steps[i].expert_layer;
    size_t first = i + 1;
    while (first < steps.size() && steps[first].kind == StepKind::kExpertGroup) ++first;
    size_t end = first;
    while (end < steps.size() && steps[end].expert_layer == layer) ++end;

    const Steps all(steps);
    DOPPLER_CHECK_OK(run_steps(all.subspan(begin, first - begin), pass, label, after));
    DOPPLER_TRY(const std::vector<uint32_t> experts, read_routes(steps[i], pass));
    const auto in_waves = waves(layer, experts);
    for (size_t wave = 0; wave < in_waves.size(); ++wave) {
      DOPPLER_CHECK_OK(make_resident(layer, in_waves[wave]));
      // Only after the last wave are the values whole.
      const bool last = wave + 1 == in_waves.size();
      DOPPLER_CHECK_OK(
          run_steps(all.subspan(first, end - first), pass, "experts", last ? after : AfterStep()));
    }
    remember(layer, experts);
    prefetch((layer + 1) % static_cast<uint32_t>(fixed_.expert_layers.size()));
    begin = end;
    i = end - 1;
  }
  return run_steps(Steps(steps).subspan(begin), pass, label, after);
}

Result<void> ExpertsOnDemand::run_steps(Steps steps, const Pass& pass, std::string_view label,
                                        const AfterStep& after) {
  if (steps.empty()) return {};
  gpu::Commands commands = device_.begin(label);
  for (const Step& step : steps) {
    DOPPLER_CHECK_OK(recorder_.record(commands, step, pass));
    if (!after) continue;
    DOPPLER_CHECK_OK(device_.submit(std::move(commands)));
    DOPPLER_CHECK_OK(after(step));
    commands = device_.begin(label);
  }
  return device_.submit(std::move(commands));
}

/// The different experts of the pass, in the order of their numbers.
Result<std::vector<uint32_t>> ExpertsOnDemand::read_routes(const Step& route, const Pass& pass) {
  const ExpertLayer& layer = fixed_.expert_layers[route.expert_layer];
  const kernels::Matrix m = recorder_.matrix(graph_.nodes[route.node].out, pass);
  std::vector<float> routes(m.offset + uint64_t{m.rows - 1} * m.stride + m.width);
  DOPPLER_CHECK_OK(device_.read(*m.buffer, 0, std::as_writable_bytes(std::span(routes))));
  std::vector<bool> asked(layer.experts, false);
  for (uint64_t row = 0; row < m.rows; ++row)
    for (uint32_t slot = 0; slot < layer.top_k; ++slot) {
      const float expert = routes[m.offset + row * m.stride + slot];
      if (!(expert >= 0 && expert < static_cast<float>(layer.experts)))
        return fail(ErrorCode::kGpu, "[gpu] an expert below {} wanted of the router, got {}", layer.experts,
                    expert);
      asked[static_cast<size_t>(expert)] = true;
    }
  std::vector<uint32_t> experts;
  for (uint32_t e = 0; e < layer.experts; ++e)
    if (asked[e]) experts.push_back(e);
  return experts;
}

/// First those that are there and as many others as fit beside them, then the rest, all slots at a time.
std::vector<std::vector<uint32_t>> ExpertsOnDemand::waves(uint32_t layer,
                                                          const std::vector<uint32_t>& experts) {
  const ExpertSlots& slots = slots_[fixed_.expert_layers[layer].pool];
  std::vector<uint32_t> order, missing;
  for (const uint32_t expert : experts)
    (slots.find({layer, expert}) != kNone ? order : missing).push_back(expert);
  stats_.hits += order.size();
  stats_.misses += missing.size();
  order.insert(order.end(), missing.begin(), missing.end());
  std::vector<std::vector<uint32_t>> out;
  for (size_t first = 0; first < order.size(); first += slots.count()) {
    const size_t count = std::min<size_t>(slots.count(), order.size() - first);
    const auto begin = order.begin() + static_cast<std::ptrdiff_t>(first);
    out.emplace_back(begin, begin + static_cast<std::ptrdiff_t>(count));
  }
  return out;
}

/// Loads what is missing of a wave and tells the device where each expert is. What the device still runs is
/// safe: its queue writes a slot only after what was submitted before.
Result<void> ExpertsOnDemand::make_resident(uint32_t layer, const std::vector<uint32_t>& experts) {
  const ExpertLayer& shape = fixed_.expert_layers[layer];
  ExpertSlots& slots = slots_[shape.pool];
  std::vector<uint32_t> places(shape.experts, kNone);
  slots.unpin_all();
  for (const uint32_t expert : experts) {
    const uint32_t slot = slots.find({layer, expert});
    if (slot == kNone) continue;
    slots.touch(slot);
    slots.pin(slot);
    places[expert] = slot;
  }
  for (const uint32_t expert : experts) {
    if (places[expert] != kNone) continue;
    DOPPLER_TRY(places[expert], load({layer, expert}));
    slots.pin(places[expert]);
  }
  return device_.write(work_.places, 0, std::as_bytes(std::span(places)));
}

Result<uint32_t> ExpertsOnDemand::load(ExpertKey key) {
  const ExpertLayer& layer = fixed_.expert_layers[key.layer];
  ExpertSlots& slots = slots_[layer.pool];
  // A wave asks for no more than there are slots. One that fails to load leaves its slot empty.
  const uint32_t slot = slots.take();
  if (const std::optional<PackedExpert> ready = prefetch_.take(key)) {
    ++stats_.prefetched;
    DOPPLER_CHECK_OK(pools_.write(device_, layer.pool, slot, *ready));
  } else {
    DOPPLER_CHECK_OK(pools_.load(device_, graph_, layer, key.expert, slot, source_));
  }
  stats_.bytes_loaded += fixed_.expert_pools[layer.pool].slot_bytes;
  slots.put(slot, key);
  return slot;
}

/// Of a prompt's chunk only a token's worth is kept: which of its experts comes again nobody knows.
void ExpertsOnDemand::remember(uint32_t layer, const std::vector<uint32_t>& experts) {
  std::vector<uint32_t>& recent = recent_[layer];
  const size_t most = 2 * fixed_.expert_layers[layer].top_k;
  std::vector<uint32_t> now(experts.begin(),
                            experts.begin() + static_cast<std::ptrdiff_t>(std::min(most, experts.size())));
  for (const uint32_t expert : recent)
    if (now.size() < most && std::find(now.begin(), now.end(), expert) == now.end()) now.push_back(expert);
  recent = std::move(now);
}

void ExpertsOnDemand::prefetch(uint32_t layer) {
  const ExpertLayer& shape = fixed_.expert_layers[layer];
  std::vector<ExpertKey> keys;
  for (const uint32_t expert : recent_[layer])
    if (keys.size() < shape.top_k && slots_[shape.pool].find({layer, expert}) == kNone)
      keys.push_back({layer, expert});
  prefetch_.want(std::move(keys));
}

}  // namespace doppler::gpu_exec
