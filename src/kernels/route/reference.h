#pragma once
// The slow, obvious form in f64.
#include <cstdint>
#include <span>
#include <vector>

#include "graph/graph.h"

namespace doppler::kernels {

/// logits [rows, experts] -> [rows, 2 * top_k].
std::vector<double> route_reference(std::span<const float> logits, uint32_t rows, uint32_t experts,
                                    uint32_t top_k, graph::Routing routing);

}  // namespace doppler::kernels
