#include "kernels/mul/reference.h"

namespace doppler::kernels {

std::vector<double> mul_reference(std::span<const float> a, std::span<const float> b, uint32_t rows) {
  std::vector<double> out(a.size());
  const size_t width = a.size() / rows, b_width = b.size() / rows;
  for (size_t i = 0; i < a.size(); ++i) {
    const size_t column = b_width == 1 ? 0 : i % width;
    out[i] = double{a[i]} * double{b[i / width * b_width + column]};
  }
  return out;
}

}  // namespace doppler::kernels
