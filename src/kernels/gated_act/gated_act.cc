#include "kernels/gated_act/gated_act.h"

#include "kernels/common/record.h"

namespace doppler::kernels {

Result<void> record_gated_act(gpu::Device& device, gpu::Commands& commands, const GatedActArgs& args) {
  const gpu::Caps& caps = device.caps();
  const uint32_t rows = args.out.rows, width = args.out.width;
  DOPPLER_CHECK_OK(check_matrix("gated_act", "out", args.out));
  DOPPLER_CHECK_OK(check_shape("gated_act", "in", args.in, rows, uint64_t{width} * 2));
  DOPPLER_CHECK_OK(check_apart("gated_act", "in", args.in, args.out));
  const GatedActPlan plan = plan_gated_act(rows, width, aligned4(args.in) && aligned4(args.out), caps);
  const bool silu = args.gate == Gate::kSilu;
  Defines defines;
  defines.number("WORKGROUP", plan.workgroup).flag("SILU", silu);
  defines.set("VALUE", plan.vec4 ? "vec4<f32>" : "f32").number("LANES", plan.vec4 ? 4 : 1);
  const std::string label =
      fmt::format("gated_act/{}/{}", silu ? "silu" : "gelu", plan.vec4 ? "vec4" : "scalar");
  DOPPLER_TRY(const gpu::Pipeline* pipeline,
              kernel_pipeline(device, label, "gated_act/gated_act.wgsl", defines));
  const BoundMatrix in = bind_matrix(args.in, caps), out = bind_matrix(args.out, caps);
  const GatedActParams params{rows,       width,           in.offset,   args.in.stride,
                              out.offset, args.out.stride, plan.grid[0]};
  const gpu::Binding bindings[] = {in.binding, out.binding};
  commands.dispatch(*pipeline, bindings, gpu::as_params(params), plan.grid);
  return {};
}

Result<void> run_gated_act(gpu::Device& device, const GatedActArgs& args) {
  return run_now(device, "gated_act", record_gated_act, args);
}

}  // namespace doppler::kernels
