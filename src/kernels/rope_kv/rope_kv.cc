#include "kernels/rope_kv/rope_kv.h"

#include <vector>

#include "kernels/common/record.h"

namespace doppler::kernels {
namespace {

constexpr uint32_t kMaxHead = 1024;  // a head lies in workgroup memory

Result<void> check(const RopeKvArgs& args, const gpu::Caps& caps) {
  DOPPLER_CHECK_OK(check_matrix("rope_kv", "x", args.x));
  const uint64_t width = (args.q_heads + 2ull * args.kv_heads) * args.head_dim;
  if (args.q_heads == 0 || args.kv_heads == 0 || args.head_dim == 0 || args.head_dim % 8 != 0 ||
      args.head_dim > kMaxHead || args.x.width != width)
    return fail(
        ErrorCode::kBadInput,
        "[rope_kv] {} q heads and 2 x {} of k and v, of whole eights up to {} columns, wanted in {} columns",
        args.q_heads, args.kv_heads, kMaxHead, args.x.width);
  if (args.cache.width != args.kv_heads * args.head_dim)
    return fail(ErrorCode::kBadInput, "[rope_kv] a cache of {} columns wanted, got {}",
                args.kv_heads * args.head_dim, args.cache.width);
  DOPPLER_CHECK_OK(check_kv("rope_kv", args.cache, uint64_t{args.position} + args.x.rows, caps));
  if (args.rotary_dim == 0 || args.rotary_dim % 2 != 0 || args.rotary_dim > args.head_dim)
    return fail(ErrorCode::kBadInput, "[rope_kv] an even rotary part of a head of {} wanted, got {}",
                args.head_dim, args.rotary_dim);
  const uint64_t table_bytes = (uint64_t{args.table_row} + args.x.rows) * args.rotary_dim * 4;
  if (args.table == nullptr || args.table == args.x.buffer || args.table->bytes() < table_bytes)
    return fail(ErrorCode::kBadInput, "[rope_kv] a table of {} bytes wanted, got {}", table_bytes,
                args.table == nullptr ? 0 : args.table->bytes());
  if (args.norms) {
    const uint64_t last = uint64_t{std::max(args.norms->q_base, args.norms->k_base)} + args.head_dim;
    if (args.norms->weights == nullptr || args.norms->weights == args.x.buffer ||
        args.norms->weights->bytes() < last * 4)
      return fail(ErrorCode::kBadInput, "[rope_kv] norm weights up to float {} wanted", last);
  }
  return {};
}

}  // namespace

Result<void> record_rope_kv(gpu::Device& device, gpu::Commands& commands, const RopeKvArgs& args) {
  const gpu::Caps& caps = device.caps();
  DOPPLER_CHECK_OK(check(args, caps));
  const bool f16 = args.cache.element == KvElement::kF16, norm = args.norms.has_value();
  const RopeKvPlan plan = plan_rope_kv(args.x.rows, args.q_heads + 2 * args.kv_heads, caps);
  Defines defines;
  defines.flag("NORM", norm)
      .flag("INTERLEAVED", args.interleaved)
      .flag("F16_CACHE", f16)
      .set("WORDS", f16 ? "vec2<u32>" : "vec4<f32>")
      .number("HEAD_DIM", args.head_dim);
  const std::string label = fmt::format("rope_kv/{}/{}{}{}", args.head_dim, f16 ? "f16" : "f32",
                                        norm ? "/norms" : "", args.interleaved ? "/interleaved" : "");
  DOPPLER_TRY(const gpu::Pipeline* pipeline, kernel_pipeline(device, label, "rope_kv/rope_kv.wgsl", defines));
  const BoundMatrix x = bind_matrix(args.x, caps);
  RopeKvParams params{};
  params.rows = args.x.rows;
  params.q_heads = args.q_heads;
  params.kv_heads = args.kv_heads;
  params.pairs = args.rotary_dim / 2;
  params.x_offset = x.offset;
  params.x_stride = args.x.stride;
  params.table_row = args.table_row;
  params.position = args.position;
  params.grid_x = plan.grid[0];
  std::vector<gpu::Binding> bindings{{args.table}};
  if (norm) {
    params.q_norm = args.norms->q_base;
    params.k_norm = args.norms->k_base;
    params.eps = args.norms->eps;
    params.weight_offset = args.norms->weight_offset;
    bindings.push_back({args.norms->weights});
  }
  const uint64_t bytes = kv_bytes(args.cache.capacity, args.cache.width, args.cache.element);
  bindings.push_back(x.binding);
  bindings.push_back({args.cache.k, 0, bytes});
  bindings.push_back({args.cache.v, 0, bytes});
  commands.dispatch(*pipeline, bindings, gpu::as_params(params), plan.grid);
  return {};
}

Result<void> run_rope_kv(gpu::Device& device, const RopeKvArgs& args) {
  return run_now(device, "rope_kv", record_rope_kv, args);
}

}  // namespace doppler::kernels
