#include "kernels/act/act.h"

#include "kernels/common/activation.h"
#include "kernels/common/record.h"

namespace doppler::kernels {

Result<void> record_act(gpu::Device& device, gpu::Commands& commands, const ActArgs& args) {
  const gpu::Caps& caps = device.caps();
  DOPPLER_CHECK_OK(check_matrix("act", "out", args.out));
  DOPPLER_CHECK_OK(check_shape("act", "in", args.in, args.out.rows, args.out.width));
  DOPPLER_CHECK_OK(check_apart("act", "in", args.in, args.out));
  if (args.activation == graph::Activation::kSwigluClamped)
    return fail(ErrorCode::kBadInput, "[act] an activation of one value wanted, got {}",
                activation_name(args.activation));
  const ActPlan plan = plan_act(args.out.rows, args.out.width, aligned4(args.in) && aligned4(args.out), caps);
  Defines defines;
  set_activation_defines(defines, args.activation);
  defines.number("WORKGROUP", plan.workgroup)
      .set("VALUE", plan.vec4 ? "vec4<f32>" : "f32")
      .number("LANES", plan.vec4 ? 4 : 1);
  const std::string label =
      fmt::format("act/{}/{}", activation_name(args.activation), plan.vec4 ? "vec4" : "scalar");
  DOPPLER_TRY(const gpu::Pipeline* pipeline, kernel_pipeline(device, label, "act/act.wgsl", defines));
  const BoundMatrix in = bind_matrix(args.in, caps), out = bind_matrix(args.out, caps);
  const ActParams params{args.out.rows, args.out.width,  in.offset,   args.in.stride,
                         out.offset,    args.out.stride, plan.grid[0]};
  const gpu::Binding bindings[] = {in.binding, out.binding};
  commands.dispatch(*pipeline, bindings, gpu::as_params(params), plan.grid);
  return {};
}

Result<void> run_act(gpu::Device& device, const ActArgs& args) {
  return run_now(device, "act", record_act, args);
}

}  // namespace doppler::kernels
