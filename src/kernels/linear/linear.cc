#include "kernels/linear/linear.h"

#include "kernels/common/record.h"
#include "kernels/weights/shader.h"

namespace doppler::kernels {
namespace {

/// Where x comes from, checked: its row count and whether it can be read four columns at a time.
struct Input {
  uint32_t rows = 0;
  bool aligned = true;
};

Result<Input> check_input(const LinearArgs& args) {
  const uint32_t columns = args.w.layout.columns;
  if (!args.quantized) {
    DOPPLER_CHECK_OK(check_shape("linear", "x", args.x, args.x.rows, columns));
    DOPPLER_CHECK_OK(check_apart("linear", "x", args.x, args.out));
    return Input{args.x.rows, aligned4(args.x)};
  }
  const QuantizedAct& x = *args.quantized;
  if (!linear_takes_int8(args.w.layout.dtype))
    return fail(ErrorCode::kUnsupported, "[linear] int8 activations want quantised weights, got {}",
                dtype_name(args.w.layout.dtype));
  if (x.buffer == nullptr || x.rows == 0 || x.columns != columns ||
      x.buffer->bytes() < quantized_act_bytes(x.rows, x.columns))
    return fail(ErrorCode::kBadInput, "[linear] quantised x: {} columns wanted, got {} x {}", columns, x.rows,
                x.columns);
  return Input{x.rows, true};
}

}  // namespace

Result<void> record_linear(gpu::Device& device, gpu::Commands& commands, const LinearArgs& args) {
  const gpu::Caps& caps = device.caps();
  const PackedLayout& layout = args.w.layout;
  DOPPLER_CHECK_OK(check_weight("linear", args.w, caps));
  DOPPLER_TRY(const Input input, check_input(args));
  DOPPLER_CHECK_OK(check_shape("linear", "out", args.out, input.rows, layout.rows));
  if (args.bias != nullptr && args.bias->bytes() < (uint64_t{args.bias_offset} + layout.rows) * 4)
    return fail(ErrorCode::kBadInput, "[linear] bias of {} values wanted, got {} bytes", layout.rows,
                args.bias->bytes());

  const bool int8 = args.quantized.has_value();
  const LinearShape shape{layout.dtype, input.rows,    layout.columns,      layout.rows,
                          int8,         input.aligned, args.bias != nullptr};
  const LinearPlan plan = args.plan     ? *args.plan
                          : args.kernel ? plan_linear_as(*args.kernel, shape, caps)
                                        : plan_linear(shape, caps);
  if (plan.kernel == LinearKernel::kMatvec && input.rows > kMatvecRows)
    return fail(ErrorCode::kBadInput, "[linear] matvec takes at most {} rows, got {}", kMatvecRows,
                input.rows);

  Defines defines;
  set_weight_defines(defines, layout.dtype);
  defines.flag("INT8", int8).flag("BIAS", shape.bias).flag("X_VEC4", input.aligned);
  std::string label =
      fmt::format("linear/{}/{}/{}{}{}", linear_kernel_name(plan.kernel), weight_label(layout.dtype),
                  int8 ? "int8" : "f32", input.aligned ? "" : "/scalar", shape.bias ? "/bias" : "");
  if (plan.kernel == LinearKernel::kMatvec) {
    defines.number("WORKGROUP", plan.workgroup).number("TEAM", plan.team).number("ROWS", plan.rows_a_thread);
    defines.number("X_ROWS", plan.x_rows_tile).flag("SUBGROUPS", plan.subgroups);
    label += fmt::format("/t{}r{}x{}{}", plan.team, plan.rows_a_thread, plan.x_rows_tile,
                         plan.subgroups ? "/sg" : "");
  } else {
    defines.number("X_TILE", plan.x_rows_tile).number("X_PER", plan.x_rows_tile / 8);
    label += fmt::format("/{}x{}", plan.x_rows_tile, plan.w_rows_tile);
  }
  const std::string file = fmt::format("linear/{}.wgsl", linear_kernel_name(plan.kernel));
  DOPPLER_TRY(const gpu::Pipeline* pipeline, kernel_pipeline(device, label, file, defines, plan.subgroups));

  LinearParams params{};
  params.x_rows = input.rows;
  params.columns = layout.columns;
  params.w_rows = layout.rows;
  set_weight_params(params, layout);
  params.grid_x = plan.grid[0];
  params.bias_offset = args.bias_offset;
  std::vector<gpu::Binding> bindings;
  bind_weight(args.w, bindings);
  if (int8) {
    const QuantizedAct& x = *args.quantized;
    bindings.push_back({x.buffer, 0, x.scales_offset});
    bindings.push_back({x.buffer, x.scales_offset, uint64_t{x.rows} * layout.groups * 8});
  } else {
    const BoundMatrix x = bind_matrix(args.x, caps);
    bindings.push_back(x.binding);
    params.x_offset = x.offset;
    params.x_stride = args.x.stride;
  }
  if (shape.bias) bindings.push_back({args.bias});
  const BoundMatrix out = bind_matrix(args.out, caps);
  bindings.push_back(out.binding);
  params.out_offset = out.offset;
  params.out_stride = args.out.stride;
  commands.dispatch(*pipeline, bindings, gpu::as_params(params), plan.grid);
  return {};
}

Result<void> run_linear(gpu::Device& device, const LinearArgs& args) {
  return run_now(device, "linear", record_linear, args);
}

}  // namespace doppler::kernels
