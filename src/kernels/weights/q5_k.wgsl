#include "weights/quants.wgsl"
#include "weights/fives.wgsl"
#include "weights/scale_min_k.wgsl"
