#include "kernels/mean_rows/mean_rows.h"

#include "kernels/common/record.h"

namespace doppler::kernels {

Result<void> record_mean_rows(gpu::Device& device, gpu::Commands& commands, const MeanRowsArgs& args) {
  const gpu::Caps& caps = device.caps();
  DOPPLER_CHECK_OK(check_matrix("mean_rows", "in", args.in));
  DOPPLER_CHECK_OK(check_shape("mean_rows", "out", args.out, 1, args.in.width));
  DOPPLER_CHECK_OK(check_apart("mean_rows", "in", args.in, args.out));
  const MeanRowsPlan plan = args.plan ? *args.plan : plan_mean_rows(args.in.width, caps);
  Defines defines;
  defines.number("WORKGROUP", plan.workgroup).number("COLUMNS", plan.columns);
  const std::string label = fmt::format("mean_rows/wg{}", plan.workgroup);
  DOPPLER_TRY(const gpu::Pipeline* pipeline,
              kernel_pipeline(device, label, "mean_rows/mean_rows.wgsl", defines));
  const BoundMatrix in = bind_matrix(args.in, caps), out = bind_matrix(args.out, caps);
  const MeanRowsParams params{args.in.rows,   args.in.width, in.offset,
                              args.in.stride, out.offset,    plan.grid[0]};
  const gpu::Binding bindings[] = {in.binding, out.binding};
  commands.dispatch(*pipeline, bindings, gpu::as_params(params), plan.grid);
  return {};
}

Result<void> run_mean_rows(gpu::Device& device, const MeanRowsArgs& args) {
  return run_now(device, "mean_rows", record_mean_rows, args);
}

}  // namespace doppler::kernels
