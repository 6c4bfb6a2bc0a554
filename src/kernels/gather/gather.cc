#include "kernels/gather/gather.h"

#include "kernels/common/record.h"
#include "kernels/weights/shader.h"

namespace doppler::kernels {

Result<void> record_gather(gpu::Device& device, gpu::Commands& commands, const GatherArgs& args) {
  const gpu::Caps& caps = device.caps();
  const PackedLayout& layout = args.table.layout;
  DOPPLER_CHECK_OK(check_weight("gather", args.table, caps));
  DOPPLER_CHECK_OK(check_shape("gather", "out", args.out, args.out.rows, layout.columns));
  if (args.ids == nullptr || args.ids->bytes() < (uint64_t{args.ids_offset} + args.out.rows) * 4)
    return fail(ErrorCode::kBadInput, "[gather] {} ids wanted, got a buffer of {} bytes", args.out.rows,
                args.ids == nullptr ? 0 : args.ids->bytes());
  const GatherPlan plan = plan_gather(args.out.rows, layout.columns, caps);
  Defines defines;
  set_weight_defines(defines, layout.dtype);
  defines.number("WORKGROUP", plan.workgroup);
  DOPPLER_TRY(const gpu::Pipeline* pipeline,
              kernel_pipeline(device, "gather/" + weight_label(layout.dtype), "gather/gather.wgsl", defines));
  const BoundMatrix out = bind_matrix(args.out, caps);
  GatherParams params{};
  params.count = args.out.rows;
  params.columns = layout.columns;
  params.first_row = args.table.first_row;
  params.w_rows = layout.rows;
  params.out_offset = out.offset;
  params.out_stride = args.out.stride;
  params.ids_offset = args.ids_offset;
  set_weight_params(params, layout);
  params.grid_x = plan.grid[0];
  params.scale = args.scale;
  std::vector<gpu::Binding> bindings;
  bind_weight(args.table, bindings);
  bindings.push_back({args.ids});
  bindings.push_back(out.binding);
  commands.dispatch(*pipeline, bindings, gpu::as_params(params), plan.grid);
  return {};
}

Result<void> run_gather(gpu::Device& device, const GatherArgs& args) {
  return run_now(device, "gather", record_gather, args);
}

}  // namespace doppler::kernels
