#include "kernels/act/reference.h"

#include "kernels/common/activation.h"

namespace doppler::kernels {

std::vector<double> act_reference(graph::Activation activation, std::span<const float> in) {
  std::vector<double> out;
  for (const float x : in) out.push_back(activation_reference(activation, double{x}));
  return out;
}

}  // namespace doppler::kernels
