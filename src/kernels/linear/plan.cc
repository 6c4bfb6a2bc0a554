#include "kernels/linear/plan.h"

#include <algorithm>

#include "kernels/common/record.h"

namespace doppler::kernels {
namespace {

LinearPlan plan_matvec(const LinearShape& shape, const gpu::Caps& caps) {
  LinearPlan plan;
  plan.kernel = LinearKernel::kMatvec;
  plan.workgroup = 64;
  const uint32_t groups = static_cast<uint32_t>(ceil_div(shape.columns, 32));
  // A software driver runs 4 or 8 lanes at once: a team as wide as that keeps them busy on short rows.
  // Hardware wants 32 lanes on neighbouring words, fewer when the row is too short for them.
  plan.team = 8;
  if (caps.hardware && groups >= 16) plan.team = groups >= 32 ? 32 : 16;
  // More rows a thread reuse x more often; fewer keep a large GPU busy on a small matrix.
  plan.rows_a_thread = 4;
  if (caps.hardware && shape.w_rows < 8192) plan.rows_a_thread = shape.w_rows < 2048 ? 1 : 2;
  plan.x_rows_tile = shape.x_rows;
  // Rows of x are reuse too: 4 sums a thread either way (16 took SwiftShader minutes to compile).
  plan.rows_a_thread = std::max(1u, plan.rows_a_thread / shape.x_rows);
  plan.w_rows_tile = plan.workgroup / plan.team * plan.rows_a_thread;
  plan.subgroups = caps.subgroups && caps.subgroup_size >= 4;
  plan.grid = grid_for(ceil_div(shape.w_rows, plan.w_rows_tile), caps);
  return plan;
}

LinearPlan plan_matmat(const LinearShape& shape, const gpu::Caps& caps) {
  LinearPlan plan;
  plan.kernel = LinearKernel::kMatmat;
  plan.workgroup = 64;
  plan.team = 1;
  plan.rows_a_thread = 8;
  plan.w_rows_tile = 64;
  plan.x_rows_tile = 64;
  while (plan.x_rows_tile > 8 && plan.x_rows_tile / 2 >= shape.x_rows) plan.x_rows_tile /= 2;
  // A hundred workgroups fill a mid-sized GPU; smaller tiles are the price.
  const uint64_t w_tiles = ceil_div(shape.w_rows, plan.w_rows_tile);
  while (caps.hardware && plan.x_rows_tile > 16 && w_tiles * ceil_div(shape.x_rows, plan.x_rows_tile) < 100)
    plan.x_rows_tile /= 2;
  const auto tiles = grid_for(w_tiles, caps);
  plan.grid = {tiles[0], static_cast<uint32_t>(ceil_div(shape.x_rows, plan.x_rows_tile)), tiles[1]};
  return plan;
}

}  // namespace

std::string_view linear_kernel_name(LinearKernel kernel) {
  return kernel == LinearKernel::kMatvec ? "matvec" : "matmat";
}

bool linear_takes_int8(DType dtype) {
  return dtype != DType::kF32 && dtype != DType::kF16 && dtype != DType::kBF16 && is_runnable(dtype);
}

LinearPlan plan_linear(const LinearShape& shape, const gpu::Caps& caps) {
  const bool few = shape.x_rows <= kMatvecRows;
  LinearPlan plan = few ? plan_matvec(shape, caps) : plan_matmat(shape, caps);
  plan.reason = fmt::format("{} rows of x, at most {} go one by one", shape.x_rows, kMatvecRows);
  return plan;
}

LinearPlan plan_linear_as(LinearKernel kernel, const LinearShape& shape, const gpu::Caps& caps) {
  LinearPlan plan = kernel == LinearKernel::kMatvec ? plan_matvec(shape, caps) : plan_matmat(shape, caps);
  plan.reason = "pinned";
  return plan;
}

}  // namespace doppler::kernels
