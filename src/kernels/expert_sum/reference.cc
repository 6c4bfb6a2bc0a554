#include "kernels/expert_sum/reference.h"

namespace doppler::kernels {

std::vector<double> expert_sum_reference(std::span<const float> in, std::span<const float> routes,
                                         uint32_t rows, uint32_t width, uint32_t top_k) {
  std::vector<double> out(size_t{rows} * width);
  for (size_t r = 0; r < rows; ++r)
    for (size_t s = 0; s < top_k; ++s)
      for (size_t c = 0; c < width; ++c)
        out[r * width + c] +=
            double{routes[(r * 2 + 1) * top_k + s]} * double{in[(r * top_k + s) * width + c]};
  return out;
}

}  // namespace doppler::kernels
