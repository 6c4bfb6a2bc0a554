#include "kernels/select_rows/select_rows.h"

#include "kernels/common/record.h"

namespace doppler::kernels {

Result<void> record_select_rows(gpu::Device& device, gpu::Commands& commands, const SelectRowsArgs& args) {
  const gpu::Caps& caps = device.caps();
  const uint32_t rows = args.out.rows, width = args.out.width;
  DOPPLER_CHECK_OK(check_matrix("select_rows", "out", args.out));
  DOPPLER_CHECK_OK(check_shape("select_rows", "in", args.in, args.in.rows, width));
  DOPPLER_CHECK_OK(check_apart("select_rows", "in", args.in, args.out));
  const uint64_t end = uint64_t{args.first} + rows;
  if (args.rows == nullptr && end > args.in.rows)
    return fail(ErrorCode::kBadInput, "[select_rows] rows up to {} wanted, in has {}", end, args.in.rows);
  if (args.rows != nullptr && args.rows->bytes() < end * 4)
    return fail(ErrorCode::kBadInput, "[select_rows] {} row numbers wanted, got {} bytes", end,
                args.rows->bytes());
  const SelectRowsPlan plan = plan_select_rows(rows, width, caps);
  const bool indexed = args.rows != nullptr;
  Defines defines;
  defines.number("WORKGROUP", plan.workgroup).flag("INDEXED", indexed);
  DOPPLER_TRY(const gpu::Pipeline* pipeline,
              kernel_pipeline(device, indexed ? "select_rows/indexed" : "select_rows/run",
                              "select_rows/select_rows.wgsl", defines));
  const BoundMatrix in = bind_matrix(args.in, caps), out = bind_matrix(args.out, caps);
  const SelectRowsParams params{rows,       width,           in.offset,  args.in.stride,
                                out.offset, args.out.stride, args.first, plan.grid[0]};
  std::vector<gpu::Binding> bindings{in.binding};
  if (indexed) bindings.push_back({args.rows});
  bindings.push_back(out.binding);
  commands.dispatch(*pipeline, bindings, gpu::as_params(params), plan.grid);
  return {};
}

Result<void> run_select_rows(gpu::Device& device, const SelectRowsArgs& args) {
  return run_now(device, "select_rows", record_select_rows, args);
}

}  // namespace doppler::kernels
