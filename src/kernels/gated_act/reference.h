#pragma once
// The slow, obvious form in f64.
#include <cstdint>
#include <span>
#include <vector>

#include "graph/graph.h"

namespace doppler::kernels {

struct GatedActReference {
  graph::Activation activation = graph::Activation::kSilu;
  uint32_t group = 0;  // columns of `in` that are one [gate | up]; 0: the whole row
  bool interleaved = false;
  double limit = 0, alpha = 1;  // kSwigluClamped
};

/// in [rows, 2 * width] gives [rows, width].
std::vector<double> gated_act_reference(const GatedActReference& shape, std::span<const float> in,
                                        uint32_t rows, uint32_t width);

}  // namespace doppler::kernels
