#include "exec/cpu/simd.h"

namespace doppler::cpu {

namespace portable {
extern const Simd kTable;
}
#if defined(__x86_64__)
namespace avx2 {
extern const Simd kTable;
}
namespace avx512 {
extern const Simd kTable;
}
#endif

const Simd& choose_simd(int limit) {
  constexpr int kPortableOnly = 1, kUpToAvx2 = 2;
#if defined(__x86_64__)
  const bool avx2_runs =
      __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") && __builtin_cpu_supports("f16c");
  const bool avx512_runs = avx2_runs && __builtin_cpu_supports("avx512f") &&
                           __builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512vl") &&
                           __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vnni");
  if (avx512_runs && limit != kPortableOnly && limit != kUpToAvx2) return avx512::kTable;
  if (avx2_runs && limit != kPortableOnly) return avx2::kTable;
#else
  static_cast<void>(limit), static_cast<void>(kPortableOnly), static_cast<void>(kUpToAvx2);
#endif
  return portable::kTable;
}

bool has_mins(DType dtype) {
  return dtype == DType::kQ4_1 || dtype == DType::kQ5_1 || dtype == DType::kQ2_K || dtype == DType::kQ4_K ||
         dtype == DType::kQ5_K;
}

bool opens_to_int8(DType dtype) {
  return is_runnable(dtype) && dtype != DType::kF32 && dtype != DType::kF16 && dtype != DType::kBF16;
}

}  // namespace doppler::cpu
