#include "kernels/route/reference.h"

#include <algorithm>
#include <cmath>
#include <numeric>

namespace doppler::kernels {

std::vector<double> route_reference(std::span<const float> logits, uint32_t rows, uint32_t experts,
                                    uint32_t top_k, graph::Routing routing) {
  std::vector<double> out(size_t{rows} * 2 * top_k);
  for (size_t r = 0; r < rows; ++r) {
    const float* in = logits.data() + r * experts;
    std::vector<uint32_t> order(experts);
    std::iota(order.begin(), order.end(), 0u);
    std::sort(order.begin(), order.end(),
              [in](uint32_t a, uint32_t b) { return in[a] > in[b] || (in[a] == in[b] && a < b); });
    double sum = 0;
    const uint32_t summed = routing == graph::Routing::kSoftmaxOverAll ? experts : top_k;
    for (uint32_t i = 0; i < summed; ++i) sum += std::exp(double{in[order[i]]} - in[order[0]]);
    for (uint32_t s = 0; s < top_k; ++s) {
      out[r * 2 * top_k + s] = order[s];
      out[r * 2 * top_k + top_k + s] = std::exp(double{in[order[s]]} - in[order[0]]) / sum;
    }
  }
  return out;
}

}  // namespace doppler::kernels
