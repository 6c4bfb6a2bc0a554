#include "kernels/gated_act/reference.h"

#include <algorithm>

#include "kernels/common/activation.h"

namespace doppler::kernels {

std::vector<double> gated_act_reference(const GatedActReference& shape, std::span<const float> in,
                                        uint32_t rows, uint32_t width) {
  using graph::Activation;
  const size_t half = (shape.group == 0 ? 2 * width : shape.group) / 2;
  std::vector<double> out(size_t{rows} * width);
  for (size_t r = 0; r < rows; ++r)
    for (size_t c = 0; c < width; ++c) {
      const float* group = in.data() + r * 2 * width + c / half * half * 2;
      const size_t pair = c % half;
      double gate = group[shape.interleaved ? 2 * pair : pair];
      double up = group[shape.interleaved ? 2 * pair + 1 : half + pair];
      if (shape.activation == Activation::kSwigluClamped) {
        gate = std::min(gate, shape.limit);
        up = std::clamp(up, -shape.limit, shape.limit);
        out[r * width + c] = gate * activation_reference(Activation::kSigmoid, shape.alpha * gate) * (up + 1);
      } else {
        out[r * width + c] = activation_reference(shape.activation, gate) * up;
      }
    }
  return out;
}

}  // namespace doppler::kernels
