#if defined(__x86_64__)
#define DOPPLER_SIMD_NAMESPACE avx2
#define DOPPLER_SIMD_NAME "AVX2"
#include "exec/cpu/simd-inl.h"
#endif
