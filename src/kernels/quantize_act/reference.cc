#include "kernels/quantize_act/reference.h"

#include <algorithm>
#include <cmath>

namespace doppler::kernels {

std::vector<double> quantize_act_reference(std::span<const float> x, uint32_t rows, uint32_t columns) {
  std::vector<double> out(x.size());
  for (size_t r = 0; r < rows; ++r)
    for (size_t first = 0; first < columns; first += 32) {
      const size_t end = std::min<size_t>(first + 32, columns);
      double peak = 0;
      for (size_t c = first; c < end; ++c) peak = std::max(peak, std::abs(double{x[r * columns + c]}));
      const double s = peak / 127;
      for (size_t c = first; c < end; ++c)
        out[r * columns + c] = s == 0 ? 0 : s * std::nearbyint(double{x[r * columns + c]} / s);
    }
  return out;
}

}  // namespace doppler::kernels
