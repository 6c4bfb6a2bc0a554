#include "kernels/kv_write/plan.h"

#include "kernels/common/record.h"

namespace doppler::kernels {

KvWritePlan plan_kv_write(uint32_t rows, uint32_t width, const gpu::Caps& caps) {
  KvWritePlan plan;
  plan.grid = grid_for(ceil_div(uint64_t{rows} * (width / 4), plan.workgroup), caps);
  plan.reason = "one thread per four columns of K and V";
  return plan;
}

}  // namespace doppler::kernels
