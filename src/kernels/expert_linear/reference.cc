#include "kernels/expert_linear/reference.h"

namespace doppler::kernels {

std::vector<double> expert_linear_reference(const ExpertLinearReference& in) {
  std::vector<double> out(size_t{in.rows} * in.top_k * in.w_rows);
  for (size_t use = 0; use < size_t{in.rows} * in.top_k; ++use) {
    const size_t row = use / in.top_k;
    const auto expert = static_cast<size_t>(in.routes[row * 2 * in.top_k + use % in.top_k]);
    const float* x = in.x.data() + (in.shared ? row : use) * in.columns;
    for (size_t n = 0; n < in.w_rows; ++n) {
      const float* w = in.w.data() + (expert * in.w_rows + n) * in.columns;
      double sum = in.bias.empty() ? 0.0 : in.bias[expert * in.w_rows + n];
      for (size_t k = 0; k < in.columns; ++k) sum += double{x[k]} * double{w[k]};
      out[use * in.w_rows + n] = sum;
    }
  }
  return out;
}

}  // namespace doppler::kernels
