#if defined(__x86_64__)
#define DOPPLER_SIMD_NAMESPACE avx512
#define DOPPLER_SIMD_NAME "AVX-512"
#include "exec/cpu/simd-inl.h"
#endif
