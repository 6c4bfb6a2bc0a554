#include "kernels/rope/rope.h"

#include <cmath>

#include "kernels/common/record.h"

namespace doppler::kernels {

std::vector<float> rope_table(std::span<const float> inv_freq, float magnitude, uint32_t first,
                              uint32_t count) {
  std::vector<float> table;
  table.reserve(size_t{count} * inv_freq.size() * 2);
  for (uint32_t position = first; position < first + count; ++position)
    for (const float frequency : inv_freq) {
      const float angle = static_cast<float>(position) * frequency;
      table.push_back(static_cast<float>(std::cos(double{angle}) * magnitude));
      table.push_back(static_cast<float>(std::sin(double{angle}) * magnitude));
    }
  return table;
}

Result<void> record_rope(gpu::Device& device, gpu::Commands& commands, const RopeArgs& args) {
  const gpu::Caps& caps = device.caps();
  DOPPLER_CHECK_OK(check_matrix("rope", "x", args.x));
  if (args.head_dim == 0 || args.x.width % args.head_dim != 0 || args.rotary_dim == 0 ||
      args.rotary_dim % 2 != 0 || args.rotary_dim > args.head_dim)
    return fail(
        ErrorCode::kBadInput,
        "[rope] heads that divide {} columns and an even rotary part wanted, got head_dim {}, rotary {}",
        args.x.width, args.head_dim, args.rotary_dim);
  const uint32_t pairs = args.rotary_dim / 2, heads = args.x.width / args.head_dim;
  const uint64_t table_bytes = (uint64_t{args.table_row} + args.x.rows) * pairs * 8;
  if (args.table == nullptr || args.table == args.x.buffer || args.table->bytes() < table_bytes)
    return fail(ErrorCode::kBadInput, "[rope] a table of {} bytes wanted, got {}", table_bytes,
                args.table == nullptr ? 0 : args.table->bytes());
  const RopePlan plan = plan_rope(args.x.rows, heads, pairs, caps);
  Defines defines;
  defines.number("WORKGROUP", plan.workgroup).flag("INTERLEAVED", args.interleaved);
  DOPPLER_TRY(const gpu::Pipeline* pipeline,
              kernel_pipeline(device, args.interleaved ? "rope/interleaved" : "rope/halves", "rope/rope.wgsl",
                              defines));
  const BoundMatrix x = bind_matrix(args.x, caps);
  const RopeParams params{args.x.rows, heads,         args.head_dim,  pairs,
                          x.offset,    args.x.stride, args.table_row, plan.grid[0]};
  const gpu::Binding bindings[] = {{args.table}, x.binding};
  commands.dispatch(*pipeline, bindings, gpu::as_params(params), plan.grid);
  return {};
}

Result<void> run_rope(gpu::Device& device, const RopeArgs& args) {
  return run_now(device, "rope", record_rope, args);
}

}  // namespace doppler::kernels
