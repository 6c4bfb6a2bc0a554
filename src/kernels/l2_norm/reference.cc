#include "kernels/l2_norm/reference.h"

#include <algorithm>
#include <cmath>

namespace doppler::kernels {

std::vector<double> l2_norm_reference(std::span<const float> x, uint32_t rows, double eps) {
  const size_t width = x.size() / rows;
  std::vector<double> out;
  for (size_t r = 0; r < rows; ++r) {
    double squares = 0;
    for (const float v : x.subspan(r * width, width)) squares += double{v} * double{v};
    for (const float v : x.subspan(r * width, width))
      out.push_back(double{v} / std::max(std::sqrt(squares), eps));
  }
  return out;
}

}  // namespace doppler::kernels
