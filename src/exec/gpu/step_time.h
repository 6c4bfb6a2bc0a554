#pragma once
// A step of a plan as a profile shows it.
#include "exec/executor.h"
#include "exec/gpu/plan.h"
#include "exec/gpu/recorder.h"

namespace doppler::gpu_exec {

/// All but its time and dispatches. A product counts the part of the weight that the step reads.
StepTime untimed(const graph::Graph& graph, const StaticPlan& fixed, const Step& step, const Pass& pass);

}  // namespace doppler::gpu_exec
