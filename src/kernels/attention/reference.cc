#include "kernels/attention/reference.h"

#include <algorithm>
#include <cmath>

namespace doppler::kernels {

std::vector<double> attention_reference(const AttentionReference& shape, std::span<const float> q,
                                        std::span<const float> k, std::span<const float> v) {
  const size_t dim = shape.head_dim, width = shape.heads * dim, kv_width = shape.kv_heads * dim;
  std::vector<double> out(shape.rows * width);
  for (size_t row = 0; row < shape.rows; ++row)
    for (size_t head = 0; head < shape.heads; ++head) {
      const size_t last = shape.position + (shape.causal ? row : shape.rows - 1),
                   kv = head / (shape.heads / shape.kv_heads) * dim;
      const size_t first = shape.window != 0 && last + 1 > shape.window ? last + 1 - shape.window : 0;
      std::vector<double> score(last + 1 - first);
      for (size_t j = first; j <= last; ++j) {
        double s = 0;
        for (size_t c = 0; c < dim; ++c)
          s += double{q[row * width + head * dim + c]} * double{k[j * kv_width + kv + c]};
        s *= shape.scale;
        score[j - first] = shape.softcap != 0 ? shape.softcap * std::tanh(s / shape.softcap) : s;
      }
      double most = *std::max_element(score.begin(), score.end()), total = 0;
      if (!shape.sinks.empty()) {
        most = std::max(most, double{shape.sinks[head]});
        total = std::exp(double{shape.sinks[head]} - most);
      }
      for (double& s : score) total += s = std::exp(s - most);
      for (size_t j = first; j <= last; ++j)
        for (size_t c = 0; c < dim; ++c)
          out[row * width + head * dim + c] += score[j - first] / total * double{v[j * kv_width + kv + c]};
    }
  return out;
}

}  // namespace doppler::kernels
