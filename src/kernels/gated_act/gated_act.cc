#include "kernels/gated_act/gated_act.h"

#include "kernels/common/activation.h"
#include "kernels/common/record.h"

namespace doppler::kernels {

Result<void> record_gated_act(gpu::Device& device, gpu::Commands& commands, const GatedActArgs& args) {
  const gpu::Caps& caps = device.caps();
  const uint32_t rows = args.out.rows, width = args.out.width;
  DOPPLER_CHECK_OK(check_matrix("gated_act", "out", args.out));
  DOPPLER_CHECK_OK(check_shape("gated_act", "in", args.in, rows, uint64_t{width} * 2));
  DOPPLER_CHECK_OK(check_apart("gated_act", "in", args.in, args.out));
  const uint32_t group = args.group == 0 ? 2 * width : args.group, half = group / 2;
  if (group % 2 != 0 || half == 0 || width % half != 0)
    return fail(ErrorCode::kBadInput, "[gated_act] even groups that divide {} columns wanted, got {}",
                2 * width, group);
  const bool clamped = args.activation == graph::Activation::kSwigluClamped;
  if (clamped && !(args.limit > 0))
    return fail(ErrorCode::kBadInput, "[gated_act] a limit above 0 wanted, got {}", args.limit);
  const bool aligned = aligned4(args.in) && aligned4(args.out) && half % 4 == 0;
  const GatedActPlan plan = plan_gated_act(rows, width, aligned, caps);
  Defines defines;
  set_activation_defines(defines, args.activation);
  defines.number("WORKGROUP", plan.workgroup).flag("CLAMPED", clamped).flag("INTERLEAVED", args.interleaved);
  defines.flag("VEC4", plan.vec4)
      .set("VALUE", plan.vec4 ? "vec4<f32>" : "f32")
      .number("LANES", plan.vec4 ? 4 : 1);
  const std::string label =
      fmt::format("gated_act/{}/{}{}", activation_name(args.activation), plan.vec4 ? "vec4" : "scalar",
                  args.interleaved ? "/interleaved" : "");
  DOPPLER_TRY(const gpu::Pipeline* pipeline,
              kernel_pipeline(device, label, "gated_act/gated_act.wgsl", defines));
  const BoundMatrix in = bind_matrix(args.in, caps), out = bind_matrix(args.out, caps);
  const GatedActParams params{rows, width,        in.offset,  args.in.stride, out.offset, args.out.stride,
                              half, plan.grid[0], args.limit, args.alpha};
  const gpu::Binding bindings[] = {in.binding, out.binding};
  commands.dispatch(*pipeline, bindings, gpu::as_params(params), plan.grid);
  return {};
}

Result<void> run_gated_act(gpu::Device& device, const GatedActArgs& args) {
  return run_now(device, "gated_act", record_gated_act, args);
}

}  // namespace doppler::kernels
