#include "kernels/add/reference.h"

namespace doppler::kernels {

std::vector<double> add_reference(std::span<const float> a, std::span<const float> b) {
  std::vector<double> out(a.size());
  for (size_t i = 0; i < a.size(); ++i) out[i] = double{a[i]} + double{b[i]};
  return out;
}

}  // namespace doppler::kernels
