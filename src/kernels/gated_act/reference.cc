#include "kernels/gated_act/reference.h"

#include <cmath>
#include <numbers>

namespace doppler::kernels {
namespace {

double act(double x, Gate gate) {
  if (gate == Gate::kSilu) return x / (1 + std::exp(-x));
  return 0.5 * x * (1 + std::tanh(std::sqrt(2 / std::numbers::pi) * (x + 0.044715 * x * x * x)));
}

}  // namespace

std::vector<double> gated_act_reference(std::span<const float> in, uint32_t rows, uint32_t width, Gate gate) {
  std::vector<double> out(size_t{rows} * width);
  for (size_t r = 0; r < rows; ++r)
    for (size_t c = 0; c < width; ++c) {
      const float* row = in.data() + r * 2 * width;
      out[r * width + c] = act(row[c], gate) * double{row[width + c]};
    }
  return out;
}

}  // namespace doppler::kernels
