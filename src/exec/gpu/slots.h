#pragma once
// Which buffer each activation lives in.
#include "exec/gpu/plan.h"

namespace doppler::gpu_exec {

/// Gives each value a free buffer from the first step that writes it to the last that reads it. A step's
/// results never share a buffer with what it reads: WebGPU forbids that. What the head reads of the body
/// stays for good, since the head may run several times; so do the logits. With `repeated_experts` the steps
/// between a kRoute and its last kExpertLinear may run several times as well: what they read or write is kept
/// until the last of them.
SlotPlan plan_slots(const graph::Graph& graph, const Plan& plan, uint32_t max_rows, uint32_t max_selected,
                    bool repeated_experts = false);

}  // namespace doppler::gpu_exec
