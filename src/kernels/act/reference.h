#pragma once
// The slow, obvious form in f64.
#include <span>
#include <vector>

#include "graph/graph.h"

namespace doppler::kernels {

std::vector<double> act_reference(graph::Activation activation, std::span<const float> in);

}  // namespace doppler::kernels
