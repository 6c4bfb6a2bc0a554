#include "kernels/rms_norm/reference.h"

#include <cmath>

namespace doppler::kernels {

std::vector<double> rms_norm_reference(std::span<const float> x, std::span<const float> weight, double eps,
                                       double weight_offset) {
  std::vector<double> out(x.size());
  const size_t width = weight.size();
  for (size_t first = 0; first < x.size(); first += width) {
    double squares = 0;
    for (size_t i = 0; i < width; ++i) squares += double{x[first + i]} * double{x[first + i]};
    const double factor = 1 / std::sqrt(squares / static_cast<double>(width) + eps);
    for (size_t i = 0; i < width; ++i)
      out[first + i] = double{x[first + i]} * factor * (double{weight[i]} + weight_offset);
  }
  return out;
}

}  // namespace doppler::kernels
