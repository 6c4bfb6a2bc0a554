#pragma once
// The slow, obvious form in f64.
#include <cstdint>
#include <span>
#include <vector>

namespace doppler::kernels {

struct AttentionReference {
  uint32_t rows, heads, kv_heads, head_dim;
  uint32_t position = 0, window = 0;
  double scale = 1, softcap = 0;
  bool causal = true;
  std::span<const float> sinks = {};  // [heads], or none
};

/// q [rows, heads * head_dim]; k, v [position + rows, kv_heads * head_dim]. Gives [rows, heads * head_dim].
std::vector<double> attention_reference(const AttentionReference& shape, std::span<const float> q,
                                        std::span<const float> k, std::span<const float> v);

}  // namespace doppler::kernels
