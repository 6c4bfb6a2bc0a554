#include "kernels/layer_norm/layer_norm.h"

#include "kernels/common/record.h"

namespace doppler::kernels {
namespace {

Result<void> check_vector(std::string_view name, const gpu::Buffer* buffer, uint32_t base, uint32_t width) {
  if (buffer != nullptr && buffer->bytes() >= (uint64_t{base} + width) * 4) return {};
  return fail(ErrorCode::kBadInput, "[layer_norm] {} of {} values from {} wanted, got {} bytes", name, width,
              base, buffer == nullptr ? 0 : buffer->bytes());
}

}  // namespace

Result<void> record_layer_norm(gpu::Device& device, gpu::Commands& commands, const LayerNormArgs& args) {
  const gpu::Caps& caps = device.caps();
  const uint32_t rows = args.x.rows, width = args.x.width;
  DOPPLER_CHECK_OK(check_matrix("layer_norm", "x", args.x));
  DOPPLER_CHECK_OK(check_shape("layer_norm", "out", args.out, rows, width));
  DOPPLER_CHECK_OK(check_apart("layer_norm", "x", args.x, args.out));
  DOPPLER_CHECK_OK(check_vector("weight", args.weight, args.weight_base, width));
  DOPPLER_CHECK_OK(check_vector("bias", args.bias, args.bias_base, width));
  const bool aligned =
      aligned4(args.x) && aligned4(args.out) && args.weight_base % 4 == 0 && args.bias_base % 4 == 0;
  const LayerNormPlan plan = args.plan ? *args.plan : plan_layer_norm(rows, width, aligned, caps);
  Defines defines;
  defines.flag("VEC4", plan.vec4)
      .set("VALUE", plan.vec4 ? "vec4<f32>" : "f32")
      .number("LANES", plan.vec4 ? 4 : 1);
  defines.number("WORKGROUP", plan.workgroup).number("SIDE", plan.workgroup == 256 ? 16 : 8);
  const std::string label = fmt::format("layer_norm/{}/wg{}", plan.vec4 ? "vec4" : "scalar", plan.workgroup);
  DOPPLER_TRY(const gpu::Pipeline* pipeline,
              kernel_pipeline(device, label, "layer_norm/layer_norm.wgsl", defines));
  const BoundMatrix x = bind_matrix(args.x, caps), out = bind_matrix(args.out, caps);
  const LayerNormParams params{rows,       width,           x.offset,         args.x.stride,
                               out.offset, args.out.stride, args.weight_base, args.bias_base,
                               args.eps,   plan.grid[0]};
  const gpu::Binding bindings[] = {x.binding, {args.weight}, {args.bias}, out.binding};
  commands.dispatch(*pipeline, bindings, gpu::as_params(params), plan.grid);
  return {};
}

Result<void> run_layer_norm(gpu::Device& device, const LayerNormArgs& args) {
  return run_now(device, "layer_norm", record_layer_norm, args);
}

}  // namespace doppler::kernels
