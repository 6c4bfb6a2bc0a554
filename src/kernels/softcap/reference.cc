#include "kernels/softcap/reference.h"

#include <cmath>

namespace doppler::kernels {

std::vector<double> softcap_reference(std::span<const float> x, double cap) {
  std::vector<double> out;
  for (const float v : x) out.push_back(cap * std::tanh(double{v} / cap));
  return out;
}

}  // namespace doppler::kernels
