#include "kernels/rms_norm/rms_norm.h"

#include "kernels/common/record.h"

namespace doppler::kernels {
namespace {

Result<void> check_weight_values(const gpu::Buffer* weight, uint32_t base, uint32_t width) {
  if (weight == nullptr || weight->bytes() < (uint64_t{base} + width) * 4)
    return fail(ErrorCode::kBadInput, "[rms_norm] weight of {} values wanted, got {} bytes", width,
                weight == nullptr ? 0 : weight->bytes());
  return {};
}

// The int8 form takes whole rows of whole groups, four columns at a time.
Result<void> check_quant(const std::optional<QuantizedAct>& quantized, const Matrix& out, uint32_t width,
                         bool aligned) {
  if (!quantized) return {};
  if (!aligned || width % 32 != 0 || out.width != width)
    return fail(ErrorCode::kBadInput,
                "[rms_norm] whole rows of groups of 32 aligned columns wanted for int8, got {}", out.width);
  return check_quantized("rms_norm", out, *quantized);
}

void bind(const std::optional<QuantizedAct>& quantized, std::vector<gpu::Binding>& bindings) {
  if (!quantized) return;
  for (const gpu::Binding& binding : bind_quantized(*quantized)) bindings.push_back(binding);
}

uint32_t side_of(uint32_t workgroup) { return workgroup == 256 ? 16 : 8; }

Result<const gpu::Pipeline*> norm_pipeline(gpu::Device& device, const RmsNormPlan& plan, bool add,
                                           bool x_in_place, bool norm_b, bool quant) {
  Defines defines;
  defines.flag("VEC4", plan.vec4)
      .set("VALUE", plan.vec4 ? "vec4<f32>" : "f32")
      .number("LANES", plan.vec4 ? 4 : 1);
  defines.flag("ADD", add)
      .flag("X_IN_PLACE", x_in_place)
      .flag("B", add)
      .flag("NORM_B", norm_b)
      .flag("QUANT", quant);
  defines.number("WORKGROUP", plan.workgroup).number("SIDE", side_of(plan.workgroup));
  const std::string label = fmt::format("{}{}/{}/wg{}{}{}", norm_b ? "norm_" : "",
                                        add ? "add_rms_norm" : "rms_norm", plan.vec4 ? "vec4" : "scalar",
                                        plan.workgroup, x_in_place ? "/inplace" : "", quant ? "/int8" : "");
  return kernel_pipeline(device, label, "rms_norm/rms_norm.wgsl", defines);
}

}  // namespace

Result<void> record_rms_norm(gpu::Device& device, gpu::Commands& commands, const RmsNormArgs& args) {
  const gpu::Caps& caps = device.caps();
  const uint32_t width = args.group == 0 ? args.x.width : args.group;
  DOPPLER_CHECK_OK(check_matrix("rms_norm", "x", args.x));
  DOPPLER_CHECK_OK(check_shape("rms_norm", "out", args.out, args.x.rows, args.x.width));
  DOPPLER_CHECK_OK(check_weight_values(args.weight, args.weight_base, width));
  if (args.x.width % width != 0)
    return fail(ErrorCode::kBadInput, "[rms_norm] groups of {} do not divide {} columns", width,
                args.x.width);
  const bool in_place = same_place(args.x, args.out);
  if (!in_place) DOPPLER_CHECK_OK(check_apart("rms_norm", "x", args.x, args.out));

  const uint32_t groups = args.x.width / width;
  const bool aligned = aligned4(args.x) && aligned4(args.out) && width % 4 == 0 && args.weight_base % 4 == 0;
  DOPPLER_CHECK_OK(check_quant(args.quantized, args.out, width, aligned));
  const RmsNormPlan plan = args.plan ? *args.plan : plan_rms_norm(args.x.rows, groups, width, aligned, caps);
  DOPPLER_TRY(const gpu::Pipeline* pipeline,
              norm_pipeline(device, plan, false, in_place, false, args.quantized.has_value()));
  const BoundMatrix x = bind_matrix(args.x, caps), out = bind_matrix(args.out, caps);
  RmsNormParams params{};
  params.rows = args.x.rows;
  params.groups = groups;
  params.width = width;
  params.x_stride = args.x.stride;
  params.x_offset = x.offset;
  params.out_stride = args.out.stride;
  params.out_offset = out.offset;
  params.weight_base = args.weight_base;
  params.eps = args.eps;
  params.weight_offset = args.weight_offset;
  params.grid_x = plan.grid[0];
  std::vector<gpu::Binding> bindings;
  if (!in_place) bindings.push_back(x.binding);
  bindings.push_back({args.weight});
  bindings.push_back(out.binding);
  bind(args.quantized, bindings);
  commands.dispatch(*pipeline, bindings, gpu::as_params(params), plan.grid);
  return {};
}

Result<void> run_rms_norm(gpu::Device& device, const RmsNormArgs& args) {
  return run_now(device, "rms_norm", record_rms_norm, args);
}

Result<void> record_add_rms_norm(gpu::Device& device, gpu::Commands& commands, const AddRmsNormArgs& args) {
  const gpu::Caps& caps = device.caps();
  Matrix a = args.a, b = args.b;
  const bool norm_b = args.b_weight_base.has_value();
  if (!norm_b && same_place(b, args.sum)) std::swap(a, b);  // in place means that a is the sum
  const uint32_t rows = a.rows, width = a.width;
  DOPPLER_CHECK_OK(check_matrix("add_rms_norm", "a", a));
  DOPPLER_CHECK_OK(check_shape("add_rms_norm", "b", b, rows, width));
  DOPPLER_CHECK_OK(check_shape("add_rms_norm", "sum", args.sum, rows, width));
  DOPPLER_CHECK_OK(check_shape("add_rms_norm", "out", args.out, rows, width));
  DOPPLER_CHECK_OK(check_weight_values(args.weight, args.weight_base, width));
  const uint32_t b_base = args.b_weight_base.value_or(0);
  DOPPLER_CHECK_OK(check_weight_values(args.weight, b_base, width));
  const bool in_place = same_place(a, args.sum);
  if (!in_place) DOPPLER_CHECK_OK(check_apart("add_rms_norm", "a", a, args.sum));
  DOPPLER_CHECK_OK(check_apart("add_rms_norm", "b", b, args.sum));
  DOPPLER_CHECK_OK(check_apart("add_rms_norm", "a", a, args.out));
  DOPPLER_CHECK_OK(check_apart("add_rms_norm", "b", b, args.out));
  DOPPLER_CHECK_OK(check_apart("add_rms_norm", "sum", args.sum, args.out));

  const bool aligned = aligned4(a) && aligned4(b) && aligned4(args.sum) && aligned4(args.out) &&
                       args.weight_base % 4 == 0 && b_base % 4 == 0;
  DOPPLER_CHECK_OK(check_quant(args.quantized, args.out, width, aligned));
  const RmsNormPlan plan = plan_rms_norm(rows, 1, width, aligned, caps);
  DOPPLER_TRY(const gpu::Pipeline* pipeline,
              norm_pipeline(device, plan, true, in_place, norm_b, args.quantized.has_value()));
  const BoundMatrix x = bind_matrix(a, caps), other = bind_matrix(b, caps), sum = bind_matrix(args.sum, caps),
                    out = bind_matrix(args.out, caps);
  const RmsNormParams params{rows,         1,
                             width,        a.stride,
                             x.offset,     args.out.stride,
                             out.offset,   args.weight_base,
                             other.offset, b.stride,
                             sum.offset,   args.sum.stride,
                             args.eps,     args.weight_offset,
                             plan.grid[0], b_base};
  std::vector<gpu::Binding> bindings;
  if (!in_place) bindings.push_back(x.binding);
  bindings.push_back(other.binding);
  bindings.push_back(sum.binding);
  bindings.push_back({args.weight});
  bindings.push_back(out.binding);
  bind(args.quantized, bindings);
  commands.dispatch(*pipeline, bindings, gpu::as_params(params), plan.grid);
  return {};
}

Result<void> run_add_rms_norm(gpu::Device& device, const AddRmsNormArgs& args) {
  return run_now(device, "add_rms_norm", record_add_rms_norm, args);
}

}  // namespace doppler::kernels
