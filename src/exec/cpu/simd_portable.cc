#define DOPPLER_SIMD_NAMESPACE portable
#define DOPPLER_SIMD_NAME "portable"
#include "exec/cpu/simd-inl.h"
