#pragma once
// The part of the planner for mixtures of experts.
#include <vector>

#include "exec/gpu/plan.h"

namespace doppler::gpu_exec {

/// Fills expert_layers, expert_pools and the sizes that follow from them.
Result<void> plan_experts(const graph::Graph& graph, const gpu::Caps& caps, const GpuOptions& options,
                          StaticPlan& fixed);

/// Which buffer holds the int8 activations that a product reads: the second for experts' products after their
/// first.
uint32_t int8_buffer_of(const StaticPlan& fixed, uint32_t node);

/// The dispatches of an expert node over `rows` tokens, in order.
std::vector<Step> expert_steps(const graph::Graph& graph, const StaticPlan& fixed, uint32_t node,
                               uint32_t rows, const gpu::Caps& caps, const GpuOptions& options);

}  // namespace doppler::gpu_exec
