#include "weights/quants.wgsl"
#include "weights/nibbles.wgsl"
#include "weights/scale_min.wgsl"
