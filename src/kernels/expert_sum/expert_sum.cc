#include "kernels/expert_sum/expert_sum.h"

#include "kernels/common/record.h"

namespace doppler::kernels {

Result<void> record_expert_sum(gpu::Device& device, gpu::Commands& commands, const ExpertSumArgs& args) {
  const gpu::Caps& caps = device.caps();
  const uint32_t rows = args.out.rows, width = args.out.width, top_k = args.routes.width / 2;
  DOPPLER_CHECK_OK(check_matrix("expert_sum", "out", args.out));
  DOPPLER_CHECK_OK(check_shape("expert_sum", "routes", args.routes, rows, 2ull * top_k));
  DOPPLER_CHECK_OK(check_shape("expert_sum", "in", args.in, rows, uint64_t{width} * top_k));
  DOPPLER_CHECK_OK(check_apart("expert_sum", "in", args.in, args.out));
  DOPPLER_CHECK_OK(check_apart("expert_sum", "routes", args.routes, args.out));
  const ExpertSumPlan plan =
      plan_expert_sum(rows, width, width % 4 == 0 && aligned4(args.in) && aligned4(args.out), caps);
  Defines defines;
  defines.number("WORKGROUP", plan.workgroup);
  defines.set("VALUE", plan.vec4 ? "vec4<f32>" : "f32").number("LANES", plan.vec4 ? 4 : 1);
  DOPPLER_TRY(const gpu::Pipeline* pipeline,
              kernel_pipeline(device, plan.vec4 ? "expert_sum/vec4" : "expert_sum/scalar",
                              "expert_sum/expert_sum.wgsl", defines));
  const BoundMatrix in = bind_matrix(args.in, caps), routes = bind_matrix(args.routes, caps),
                    out = bind_matrix(args.out, caps);
  const ExpertSumParams params{rows,       width,          top_k,         plan.grid[0],
                               in.offset,  args.in.stride, routes.offset, args.routes.stride,
                               out.offset, args.out.stride};
  const gpu::Binding bindings[] = {in.binding, routes.binding, out.binding};
  commands.dispatch(*pipeline, bindings, gpu::as_params(params), plan.grid);
  return {};
}

Result<void> run_expert_sum(gpu::Device& device, const ExpertSumArgs& args) {
  return run_now(device, "expert_sum", record_expert_sum, args);
}

}  // namespace doppler::kernels
