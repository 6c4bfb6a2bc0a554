// C names for doppler's quantisers, for tools/quant_oracle.py.
#include <cstddef>
#include <string_view>

#include "base/quants.h"

extern "C" int doppler_quantize(const char* name, const float* values, size_t count, std::byte* packed) {
  const auto dtype = doppler::dtype_from_name(name);
  if (!dtype || !doppler::can_quantize(*dtype)) return 0;
  doppler::quantize(*dtype, values, count, packed);
  return 1;
}
