#include "kernels/add_rows/reference.h"

namespace doppler::kernels {

std::vector<double> add_rows_reference(std::span<const float> in, std::span<const float> table,
                                       uint32_t columns, uint32_t first, uint32_t step) {
  std::vector<double> out(in.size());
  for (size_t i = 0; i < in.size(); ++i)
    out[i] = double{in[i]} + double{table[(first + i / columns * step) * columns + i % columns]};
  return out;
}

}  // namespace doppler::kernels
