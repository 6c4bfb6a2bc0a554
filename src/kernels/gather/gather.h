#pragma once
// out[i] = scale * table[ids[i]]: embedding rows of any packed type.
#include <cstdint>

#include "kernels/common/matrix.h"
#include "kernels/gather/plan.h"
#include "kernels/weights/packed.h"

namespace doppler::kernels {

struct GatherArgs {
  const gpu::Buffer* ids = nullptr;  // u32
  uint32_t ids_offset = 0;           // in words
  PackedWeight table;                // one part; ids outside its rows leave their row of `out` as it was
  Matrix out;                        // [ids, columns]
  float scale = 1.0f;
};

/// Record once per part of a split table.
Result<void> record_gather(gpu::Device& device, gpu::Commands& commands, const GatherArgs& args);
Result<void> run_gather(gpu::Device& device, const GatherArgs& args);

}  // namespace doppler::kernels
