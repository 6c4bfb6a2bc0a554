#include "kernels/l2_norm/l2_norm.h"

#include "kernels/common/record.h"

namespace doppler::kernels {

Result<void> record_l2_norm(gpu::Device& device, gpu::Commands& commands, const L2NormArgs& args) {
  const gpu::Caps& caps = device.caps();
  const uint32_t rows = args.x.rows, width = args.x.width;
  DOPPLER_CHECK_OK(check_matrix("l2_norm", "x", args.x));
  DOPPLER_CHECK_OK(check_shape("l2_norm", "out", args.out, rows, width));
  DOPPLER_CHECK_OK(check_apart("l2_norm", "x", args.x, args.out));
  const L2NormPlan plan = plan_l2_norm(rows, width, caps);
  Defines defines;
  defines.number("WORKGROUP", plan.workgroup).number("SIDE", 8);
  DOPPLER_TRY(const gpu::Pipeline* pipeline,
              kernel_pipeline(device, "l2_norm", "l2_norm/l2_norm.wgsl", defines));
  const BoundMatrix x = bind_matrix(args.x, caps), out = bind_matrix(args.out, caps);
  const L2NormParams params{rows,       width,           x.offset, args.x.stride,
                            out.offset, args.out.stride, args.eps, plan.grid[0]};
  const gpu::Binding bindings[] = {x.binding, out.binding};
  commands.dispatch(*pipeline, bindings, gpu::as_params(params), plan.grid);
  return {};
}

Result<void> run_l2_norm(gpu::Device& device, const L2NormArgs& args) {
  return run_now(device, "l2_norm", record_l2_norm, args);
}

}  // namespace doppler::kernels
