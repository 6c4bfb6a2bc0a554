#include "kernels/expert_linear/expert_linear.h"

#include "kernels/common/record.h"
#include "kernels/weights/shader.h"

namespace doppler::kernels {
namespace {

/// Where x comes from, checked.
struct Input {
  bool shared = true;   // a row's uses read the same columns
  bool aligned = true;  // can be read four columns at a time
};

Result<Input> check_input(const ExpertLinearArgs& args, uint32_t rows, uint32_t top_k) {
  const uint32_t columns = args.w.layout.columns;
  const bool shared = (args.quantized ? args.quantized->rows == rows : args.x.width == columns);
  if (!args.quantized) {
    DOPPLER_CHECK_OK(
        check_shape("expert_linear", "x", args.x, rows, shared ? columns : uint64_t{top_k} * columns));
    DOPPLER_CHECK_OK(check_apart("expert_linear", "x", args.x, args.out));
    if (!shared && args.x.stride != args.x.width)
      return fail(ErrorCode::kBadInput, "[expert_linear] x: rows of {} floats without gaps wanted, got {}",
                  args.x.width, args.x.stride);
    return Input{shared, args.x.offset % 4 == 0 && args.x.stride % 4 == 0 && columns % 4 == 0};
  }
  const QuantizedAct& x = *args.quantized;
  if (!linear_takes_int8(args.w.layout.dtype))
    return fail(ErrorCode::kUnsupported, "[expert_linear] int8 activations want quantised weights, got {}",
                dtype_name(args.w.layout.dtype));
  if (x.buffer == nullptr || x.columns != columns || (!shared && x.rows != rows * top_k) ||
      x.buffer->bytes() < quantized_act_bytes(x.rows, x.columns))
    return fail(ErrorCode::kBadInput, "[expert_linear] quantised x: {} or {} x {} wanted, got {} x {}", rows,
                uint64_t{rows} * top_k, columns, x.rows, x.columns);
  return Input{shared, true};
}

Result<void> check_stack(const ExpertLinearArgs& args, uint32_t w_rows, const gpu::Caps& caps) {
  const ExpertStack& w = args.w;
  DOPPLER_CHECK_OK(check_weight("expert_linear", {w.buffer, w.layout, 0}, caps));
  if (w.held == 0 || w.layout.rows != uint64_t{w.held} * w_rows)
    return fail(ErrorCode::kBadInput, "[expert_linear] weight: {} experts of {} rows wanted, got {} rows",
                w.held, w_rows, w.layout.rows);
  if (w.bias != nullptr && w.bias->bytes() < uint64_t{w.layout.rows} * 4)
    return fail(ErrorCode::kBadInput, "[expert_linear] bias of {} values wanted, got {} bytes", w.layout.rows,
                w.bias->bytes());
  if (args.places != nullptr && args.places->bytes() < uint64_t{args.experts} * 4)
    return fail(ErrorCode::kBadInput, "[expert_linear] places of {} experts wanted, got {} bytes",
                args.experts, args.places->bytes());
  return {};
}

}  // namespace

Result<void> record_expert_linear(gpu::Device& device, gpu::Commands& commands,
                                  const ExpertLinearArgs& args) {
  const gpu::Caps& caps = device.caps();
  const PackedLayout& layout = args.w.layout;
  const uint32_t rows = args.out.rows, top_k = args.routes.width / 2, w_rows = args.out.width;
  DOPPLER_CHECK_OK(check_matrix("expert_linear", "out", args.out));
  DOPPLER_CHECK_OK(check_shape("expert_linear", "routes", args.routes, rows, 2ull * top_k));
  DOPPLER_CHECK_OK(check_apart("expert_linear", "routes", args.routes, args.out));
  DOPPLER_CHECK_OK(check_stack(args, w_rows, caps));
  Matrix whole_out = args.out;
  whole_out.width = (top_k - 1) * args.slot_width + w_rows;
  if (top_k == 0 || (top_k > 1 && args.slot_width < w_rows))
    return fail(ErrorCode::kBadInput, "[expert_linear] slots of {} columns apart wanted, got {}", w_rows,
                args.slot_width);
  DOPPLER_CHECK_OK(check_matrix("expert_linear", "out", whole_out));
  DOPPLER_TRY(const Input input, check_input(args, rows, top_k));

  const bool int8 = args.quantized.has_value(), bias = args.w.bias != nullptr;
  const ExpertLinearShape shape{layout.dtype,   rows,   top_k, args.experts,
                                layout.columns, w_rows, int8,  input.aligned};
  const LinearPlan plan = plan_expert_linear(shape, caps);
  const bool tiled = plan.kernel == LinearKernel::kMatmat;
  if (plan.grid[tiled ? 1 : 2] > caps.max_workgroups_per_dimension)
    return fail(ErrorCode::kUnsupported, "[expert_linear] {} tiles at most wanted, got {}; lower --chunk",
                caps.max_workgroups_per_dimension, plan.grid[tiled ? 1 : 2]);
  if (tiled && (!args.groups || args.groups->buffer == nullptr || args.groups->tile != plan.x_rows_tile ||
                args.groups->tiles != plan.grid[1] || args.groups->uses != rows * top_k))
    return fail(ErrorCode::kBadInput, "[expert_linear] {} rows in groups of {} uses wanted, got others", rows,
                plan.x_rows_tile);

  Defines defines;
  set_weight_defines(defines, layout.dtype);
  defines.flag("INT8", int8).flag("BIAS", bias).flag("X_VEC4", input.aligned);
  defines.flag("TILED", tiled).flag("PLACED", args.places != nullptr);
  std::string label =
      fmt::format("expert_linear/{}/{}/{}{}{}{}", linear_kernel_name(plan.kernel), weight_label(layout.dtype),
                  int8 ? "int8" : "f32", input.aligned ? "" : "/scalar", bias ? "/bias" : "",
                  args.places != nullptr ? "/placed" : "");
  if (tiled) {
    defines.number("X_TILE", plan.x_rows_tile).number("X_PER", plan.x_rows_tile / 8);
    label += fmt::format("/{}x{}", plan.x_rows_tile, plan.w_rows_tile);
  } else {
    defines.number("WORKGROUP", plan.workgroup).number("TEAM", plan.team).number("ROWS", plan.rows_a_thread);
    defines.number("X_ROWS", 1).flag("SUBGROUPS", plan.subgroups);
    label += fmt::format("/t{}r{}{}", plan.team, plan.rows_a_thread, plan.subgroups ? "/sg" : "");
  }
  const std::string file = fmt::format("expert_linear/{}.wgsl", linear_kernel_name(plan.kernel));
  DOPPLER_TRY(const gpu::Pipeline* pipeline, kernel_pipeline(device, label, file, defines, plan.subgroups));

  ExpertLinearParams params{};
  params.uses = rows * top_k;
  params.columns = layout.columns;
  params.w_rows = w_rows;
  set_weight_params(params, layout);
  params.grid_x = plan.grid[0];
  params.x_uses = input.shared ? top_k : 1;
  params.top_k = top_k;
  params.slot_width = args.slot_width;
  params.first = args.w.first;
  params.held = args.w.held;
  std::vector<gpu::Binding> bindings;
  bind_weight({args.w.buffer, layout, 0}, bindings);
  if (int8) {
    const QuantizedAct& x = *args.quantized;
    bindings.push_back({x.buffer, 0, x.scales_offset});
    bindings.push_back({x.buffer, x.scales_offset, uint64_t{x.rows} * layout.groups * 8});
  } else {
    const BoundMatrix x = bind_matrix(args.x, caps);
    bindings.push_back(x.binding);
    params.x_offset = x.offset;
    params.x_stride = input.shared ? args.x.stride : layout.columns;
  }
  if (bias) bindings.push_back({args.w.bias});
  if (args.places != nullptr) bindings.push_back({args.places});
  if (tiled) {
    bindings.push_back({args.groups->buffer});
    params.tiles = args.groups->tiles;
  } else {
    const BoundMatrix routes = bind_matrix(args.routes, caps);
    bindings.push_back(routes.binding);
    params.routes_offset = routes.offset;
    params.routes_stride = args.routes.stride;
  }
  const BoundMatrix out = bind_matrix(whole_out, caps);
  bindings.push_back(out.binding);
  params.out_offset = out.offset;
  params.out_stride = args.out.stride;
  commands.dispatch(*pipeline, bindings, gpu::as_params(params), plan.grid);
  return {};
}

Result<void> run_expert_linear(gpu::Device& device, const ExpertLinearArgs& args) {
  return run_now(device, "expert_linear", record_expert_linear, args);
}

}  // namespace doppler::kernels
