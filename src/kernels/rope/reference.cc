#include "kernels/rope/reference.h"

#include <cmath>

namespace doppler::kernels {

std::vector<double> rope_reference(std::span<const float> x, uint32_t rows, uint32_t head_dim,
                                   std::span<const float> inv_freq, double magnitude, uint32_t first,
                                   bool interleaved) {
  std::vector<double> out(x.begin(), x.end());
  const size_t pairs = inv_freq.size(), heads = x.size() / rows / head_dim;
  for (size_t head = 0; head < rows * heads; ++head)
    for (size_t i = 0; i < pairs; ++i) {
      const float angle =
          static_cast<float>(first + head / heads) * inv_freq[i];  // f32, as models are trained
      const double c = std::cos(double{angle}) * magnitude, s = std::sin(double{angle}) * magnitude;
      const size_t a = head * head_dim + (interleaved ? 2 * i : i), b = interleaved ? a + 1 : a + pairs;
      out[a] = double{x[a]} * c - double{x[b]} * s;
      out[b] = double{x[b]} * c + double{x[a]} * s;
    }
  return out;
}

}  // namespace doppler::kernels
