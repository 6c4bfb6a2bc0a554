#include "kernels/add_rows/add_rows.h"

#include "kernels/common/record.h"
#include "kernels/weights/shader.h"

namespace doppler::kernels {

Result<void> record_add_rows(gpu::Device& device, gpu::Commands& commands, const AddRowsArgs& args) {
  const gpu::Caps& caps = device.caps();
  const PackedLayout& layout = args.table.layout;
  const uint32_t rows = args.in.rows;
  DOPPLER_CHECK_OK(check_weight("add_rows", args.table, caps));
  DOPPLER_CHECK_OK(check_shape("add_rows", "in", args.in, rows, layout.columns));
  DOPPLER_CHECK_OK(check_shape("add_rows", "out", args.out, rows, layout.columns));
  DOPPLER_CHECK_OK(check_apart("add_rows", "in", args.in, args.out));
  if (args.step > 1)
    return fail(ErrorCode::kBadInput, "[add_rows] a step of 0 or 1 wanted, got {}", args.step);
  const AddRowsPlan plan = plan_add_rows(rows, layout.columns, caps);
  Defines defines;
  set_weight_defines(defines, layout.dtype);
  defines.number("WORKGROUP", plan.workgroup);
  DOPPLER_TRY(const gpu::Pipeline* pipeline, kernel_pipeline(device, "add_rows/" + weight_label(layout.dtype),
                                                             "add_rows/add_rows.wgsl", defines));
  const BoundMatrix in = bind_matrix(args.in, caps), out = bind_matrix(args.out, caps);
  AddRowsParams params{};
  params.rows = rows;
  params.columns = layout.columns;
  params.part_first = args.table.first_row;
  params.w_rows = layout.rows;
  params.in_offset = in.offset;
  params.in_stride = args.in.stride;
  params.out_offset = out.offset;
  params.out_stride = args.out.stride;
  params.first = args.first;
  params.step = args.step;
  set_weight_params(params, layout);
  params.grid_x = plan.grid[0];
  std::vector<gpu::Binding> bindings;
  bind_weight(args.table, bindings);
  bindings.push_back(in.binding);
  bindings.push_back(out.binding);
  commands.dispatch(*pipeline, bindings, gpu::as_params(params), plan.grid);
  return {};
}

Result<void> run_add_rows(gpu::Device& device, const AddRowsArgs& args) {
  return run_now(device, "add_rows", record_add_rows, args);
}

}  // namespace doppler::kernels
