#pragma once
// The slow, obvious form in f64.
#include <cstdint>
#include <span>
#include <vector>

namespace doppler::kernels {

struct ExpertLinearReference {
  uint32_t rows = 0, top_k = 0, columns = 0, w_rows = 0;
  bool shared = true;             // x [rows, columns]; else [rows, top_k, columns]
  std::span<const float> x, w;    // w [experts, w_rows, columns]
  std::span<const float> bias;    // [experts, w_rows]; empty: none
  std::span<const float> routes;  // [rows, 2 * top_k]
};

/// [rows, top_k, w_rows]
std::vector<double> expert_linear_reference(const ExpertLinearReference& in);

}  // namespace doppler::kernels
