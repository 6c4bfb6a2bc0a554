#include "kernels/layer_norm/reference.h"

#include <cmath>

namespace doppler::kernels {

std::vector<double> layer_norm_reference(std::span<const float> x, std::span<const float> weight,
                                         std::span<const float> bias, double eps) {
  std::vector<double> out(x.size());
  const size_t width = weight.size();
  for (size_t first = 0; first < x.size(); first += width) {
    double sum = 0, squares = 0;
    for (size_t i = 0; i < width; ++i) sum += double{x[first + i]};
    const double mean = sum / static_cast<double>(width);
    for (size_t i = 0; i < width; ++i)
      squares += (double{x[first + i]} - mean) * (double{x[first + i]} - mean);
    const double factor = 1 / std::sqrt(squares / static_cast<double>(width) + eps);
    for (size_t i = 0; i < width; ++i)
      out[first + i] = (double{x[first + i]} - mean) * factor * double{weight[i]} + double{bias[i]};
  }
  return out;
}

}  // namespace doppler::kernels
