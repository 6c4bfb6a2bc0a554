#include "kernels/add/add.h"

#include <utility>

#include "kernels/common/record.h"

namespace doppler::kernels {

Result<void> record_add(gpu::Device& device, gpu::Commands& commands, const AddArgs& args) {
  const gpu::Caps& caps = device.caps();
  Matrix a = args.a, b = args.b;
  if (same_place(b, args.out)) std::swap(a, b);  // in place means that a is out
  DOPPLER_CHECK_OK(check_matrix("add", "out", args.out));
  DOPPLER_CHECK_OK(check_shape("add", "a", a, args.out.rows, args.out.width));
  DOPPLER_CHECK_OK(check_shape("add", "b", b, args.out.rows, args.out.width));
  const bool in_place = same_place(a, args.out);
  if (!in_place) DOPPLER_CHECK_OK(check_apart("add", "a", a, args.out));
  DOPPLER_CHECK_OK(check_apart("add", "b", b, args.out));
  const AddPlan plan =
      plan_add(args.out.rows, args.out.width, aligned4(a) && aligned4(b) && aligned4(args.out), caps);
  Defines defines;
  defines.number("WORKGROUP", plan.workgroup).flag("IN_PLACE", in_place);
  defines.set("VALUE", plan.vec4 ? "vec4<f32>" : "f32").number("LANES", plan.vec4 ? 4 : 1);
  const std::string label =
      fmt::format("add/{}{}", plan.vec4 ? "vec4" : "scalar", in_place ? "/inplace" : "");
  DOPPLER_TRY(const gpu::Pipeline* pipeline, kernel_pipeline(device, label, "add/add.wgsl", defines));
  const BoundMatrix x = bind_matrix(a, caps), y = bind_matrix(b, caps), out = bind_matrix(args.out, caps);
  const AddParams params{args.out.rows, args.out.width, x.offset,        a.stride,    y.offset,
                         b.stride,      out.offset,     args.out.stride, plan.grid[0]};
  std::vector<gpu::Binding> bindings;
  if (!in_place) bindings.push_back(x.binding);
  bindings.push_back(y.binding);
  bindings.push_back(out.binding);
  commands.dispatch(*pipeline, bindings, gpu::as_params(params), plan.grid);
  return {};
}

Result<void> run_add(gpu::Device& device, const AddArgs& args) {
  return run_now(device, "add", record_add, args);
}

}  // namespace doppler::kernels
