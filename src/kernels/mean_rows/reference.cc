#include "kernels/mean_rows/reference.h"

namespace doppler::kernels {

std::vector<double> mean_rows_reference(std::span<const float> x, uint32_t rows) {
  const size_t width = x.size() / rows;
  std::vector<double> out(width);
  for (size_t i = 0; i < x.size(); ++i) out[i % width] += double{x[i]} / rows;
  return out;
}

}  // namespace doppler::kernels
