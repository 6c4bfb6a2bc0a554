#include "kernels/linear/reference.h"

namespace doppler::kernels {

std::vector<double> linear_reference(std::span<const float> x, std::span<const float> w,
                                     std::span<const float> bias, uint32_t rows, uint32_t columns,
                                     uint32_t w_rows) {
  std::vector<double> out(size_t{rows} * w_rows);
  for (size_t m = 0; m < rows; ++m)
    for (size_t n = 0; n < w_rows; ++n) {
      double sum = bias.empty() ? 0.0 : bias[n];
      for (size_t k = 0; k < columns; ++k) sum += double{x[m * columns + k]} * double{w[n * columns + k]};
      out[m * w_rows + n] = sum;
    }
  return out;
}

}  // namespace doppler::kernels
