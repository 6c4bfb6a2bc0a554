#include "kernels/mul/mul.h"

#include <utility>

#include "kernels/common/record.h"

namespace doppler::kernels {

Result<void> record_mul(gpu::Device& device, gpu::Commands& commands, const MulArgs& args) {
  const gpu::Caps& caps = device.caps();
  Matrix a = args.a, b = args.b;
  if (same_place(b, args.out)) std::swap(a, b);  // in place means that a is out
  const bool one = b.width == 1 && args.out.width != 1;
  DOPPLER_CHECK_OK(check_matrix("mul", "out", args.out));
  DOPPLER_CHECK_OK(check_shape("mul", "a", a, args.out.rows, args.out.width));
  DOPPLER_CHECK_OK(check_shape("mul", "b", b, args.out.rows, one ? 1 : args.out.width));
  const bool in_place = same_place(a, args.out);
  if (!in_place) DOPPLER_CHECK_OK(check_apart("mul", "a", a, args.out));
  DOPPLER_CHECK_OK(check_apart("mul", "b", b, args.out));
  const bool aligned = aligned4(a) && (one || aligned4(b)) && aligned4(args.out);
  const MulPlan plan = plan_mul(args.out.rows, args.out.width, aligned, caps);
  Defines defines;
  defines.number("WORKGROUP", plan.workgroup).flag("IN_PLACE", in_place).flag("ONE", one);
  defines.set("VALUE", plan.vec4 ? "vec4<f32>" : "f32").number("LANES", plan.vec4 ? 4 : 1);
  const std::string label =
      fmt::format("mul/{}{}{}", plan.vec4 ? "vec4" : "scalar", one ? "/one" : "", in_place ? "/inplace" : "");
  DOPPLER_TRY(const gpu::Pipeline* pipeline, kernel_pipeline(device, label, "mul/mul.wgsl", defines));
  const BoundMatrix x = bind_matrix(a, caps), y = bind_matrix(b, caps), out = bind_matrix(args.out, caps);
  const MulParams params{args.out.rows, args.out.width, x.offset,        a.stride,    y.offset,
                         b.stride,      out.offset,     args.out.stride, plan.grid[0]};
  std::vector<gpu::Binding> bindings;
  if (!in_place) bindings.push_back(x.binding);
  bindings.push_back(y.binding);
  bindings.push_back(out.binding);
  commands.dispatch(*pipeline, bindings, gpu::as_params(params), plan.grid);
  return {};
}

Result<void> run_mul(gpu::Device& device, const MulArgs& args) {
  return run_now(device, "mul", record_mul, args);
}

}  // namespace doppler::kernels
