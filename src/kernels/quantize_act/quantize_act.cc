#include "kernels/quantize_act/quantize_act.h"

#include "kernels/common/record.h"

namespace doppler::kernels {
namespace {

uint64_t groups_of(uint32_t columns) { return ceil_div(columns, 32); }

uint64_t quant_bytes(uint32_t rows, uint32_t columns) {
  return ceil_div(rows * groups_of(columns) * 32, 256) * 256;
}

}  // namespace

uint64_t quantized_act_bytes(uint32_t rows, uint32_t columns) {
  return quant_bytes(rows, columns) + rows * groups_of(columns) * 8;
}

QuantizedAct quantized_act(const gpu::Buffer& buffer, uint32_t rows, uint32_t columns) {
  return {&buffer, rows, columns, quant_bytes(rows, columns)};
}

Result<void> check_quantized(std::string_view op, const Matrix& x, const QuantizedAct& out) {
  if (out.buffer == nullptr || out.buffer == x.buffer || out.rows != x.rows || out.columns != x.width ||
      out.buffer->bytes() < quantized_act_bytes(x.rows, x.width))
    return fail(ErrorCode::kBadInput, "[{}] a buffer of its own with {} bytes for {} x {} int8 values wanted",
                op, quantized_act_bytes(x.rows, x.width), x.rows, x.width);
  return {};
}

std::array<gpu::Binding, 2> bind_quantized(const QuantizedAct& out) {
  return {gpu::Binding{out.buffer, 0, out.scales_offset},
          gpu::Binding{out.buffer, out.scales_offset, out.rows * groups_of(out.columns) * 8}};
}

Result<void> record_quantize_act(gpu::Device& device, gpu::Commands& commands, const QuantizeActArgs& args) {
  const gpu::Caps& caps = device.caps();
  DOPPLER_CHECK_OK(check_matrix("quantize_act", "x", args.x));
  DOPPLER_CHECK_OK(check_quantized("quantize_act", args.x, args.out));
  const QuantizeActPlan plan = plan_quantize_act(args.x.rows, args.x.width, aligned4(args.x), caps);
  Defines defines;
  defines.number("WORKGROUP", plan.workgroup).flag("X_VEC4", plan.vec4);
  DOPPLER_TRY(const gpu::Pipeline* pipeline,
              kernel_pipeline(device, plan.vec4 ? "quantize_act/vec4" : "quantize_act/scalar",
                              "quantize_act/quantize_act.wgsl", defines));
  const BoundMatrix x = bind_matrix(args.x, caps);
  const uint32_t groups = static_cast<uint32_t>(groups_of(args.x.width));
  const QuantizeActParams params{args.x.rows, args.x.width, groups, args.x.stride, x.offset, plan.grid[0]};
  const auto [quants, scales] = bind_quantized(args.out);
  const gpu::Binding bindings[] = {x.binding, quants, scales};
  commands.dispatch(*pipeline, bindings, gpu::as_params(params), plan.grid);
  return {};
}

Result<void> run_quantize_act(gpu::Device& device, const QuantizeActArgs& args) {
  return run_now(device, "quantize_act", record_quantize_act, args);
}

}  // namespace doppler::kernels
