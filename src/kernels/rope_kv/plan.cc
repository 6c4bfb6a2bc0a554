#include "kernels/rope_kv/plan.h"

#include "kernels/common/record.h"

namespace doppler::kernels {

RopeKvPlan plan_rope_kv(uint32_t rows, uint32_t heads, const gpu::Caps& caps) {
  RopeKvPlan plan;
  plan.grid = grid_for(uint64_t{rows} * heads, caps);
  plan.reason = "norms, rotation and the cache in one";
  return plan;
}

}  // namespace doppler::kernels
