#include "kernels/attention/attention.h"

#include "kernels/common/record.h"

namespace doppler::kernels {
namespace {

Result<void> check_args(const AttentionArgs& args, const gpu::Caps& caps) {
  if (args.kv_heads == 0 || args.heads == 0 || args.heads % args.kv_heads != 0)
    return fail(ErrorCode::kBadInput, "[attention] heads that KV heads divide wanted, got {} and {}",
                args.heads, args.kv_heads);
  if (args.head_dim == 0 || args.head_dim % 8 != 0 || args.head_dim > kMaxHeadDim)
    return fail(ErrorCode::kUnsupported, "[attention] head_dim: a multiple of 8 up to {} wanted, got {}",
                kMaxHeadDim, args.head_dim);
  const uint64_t width = uint64_t{args.heads} * args.head_dim;
  DOPPLER_CHECK_OK(check_shape("attention", "q", args.q, args.q.rows, width));
  DOPPLER_CHECK_OK(check_shape("attention", "out", args.out, args.q.rows, width));
  DOPPLER_CHECK_OK(check_apart("attention", "q", args.q, args.out));
  if (args.cache.width != args.kv_heads * args.head_dim)
    return fail(ErrorCode::kBadInput, "[attention] cache: {} columns wanted, got {}",
                args.kv_heads * args.head_dim, args.cache.width);
  if (!args.causal && args.window != 0)
    return fail(ErrorCode::kUnsupported, "[attention] a window where attention is causal wanted, got {}",
                args.window);
  if (args.sinks != nullptr && args.sinks->bytes() < (uint64_t{args.sink_base} + args.heads) * 4)
    return fail(ErrorCode::kBadInput, "[attention] {} sinks from {} wanted, got {} bytes", args.heads,
                args.sink_base, args.sinks->bytes());
  return check_kv("attention", args.cache, uint64_t{args.position} + args.q.rows, caps);
}

}  // namespace

uint64_t attention_scratch_bytes(uint32_t heads, uint32_t head_dim, const gpu::Caps& caps) {
  if (!caps.hardware) return 0;
  return uint64_t{attention_split_rows()} * heads * attention_max_splits() * (head_dim + 2) * 4;
}

Result<void> record_attention(gpu::Device& device, gpu::Commands& commands, const AttentionArgs& args) {
  const gpu::Caps& caps = device.caps();
  DOPPLER_CHECK_OK(check_args(args, caps));
  const AttentionShape shape{args.q.rows,   args.heads,    args.kv_heads,
                             args.head_dim, args.position, args.window};
  const AttentionPlan plan = args.plan ? *args.plan : plan_attention(shape, args.scratch != nullptr, caps);
  const bool split = plan.splits > 1;
  if (split && (args.scratch == nullptr || args.scratch == args.q.buffer || args.scratch == args.out.buffer ||
                args.scratch->bytes() < plan.scratch_bytes))
    return fail(ErrorCode::kBadInput, "[attention] scratch: a buffer of its own with {} bytes wanted",
                plan.scratch_bytes);

  const bool f16 = args.cache.element == KvElement::kF16;
  const bool aligned = aligned4(args.q);
  Defines defines;
  defines.number("QUERIES", plan.query_tile)
      .number("COLUMNS", plan.columns)
      .flag("Q_VEC4", aligned)
      .flag("F16_CACHE", f16)
      .flag("SPLIT", split);
  const bool sinks = args.sinks != nullptr;
  defines.flag("SOFTCAP", args.softcap != 0).flag("CAUSAL", args.causal).flag("SINKS", sinks);
  defines.set("WORD", f16 ? "u32" : "f32").set("VALUES", f16 ? "vec2<u32>" : "vec4<f32>");
  const std::string label =
      fmt::format("attention/{}/q{}{}{}{}{}{}{}", f16 ? "f16" : "f32", plan.query_tile,
                  plan.columns == 1 ? "" : fmt::format("c{}", plan.columns), aligned ? "" : "/scalar",
                  split ? "/split" : "", args.softcap != 0 ? "/softcap" : "", args.causal ? "" : "/all",
                  sinks ? "/sinks" : "");
  DOPPLER_TRY(const gpu::Pipeline* pipeline,
              kernel_pipeline(device, label, "attention/attention.wgsl", defines));

  const BoundMatrix q = bind_matrix(args.q, caps), out = bind_matrix(args.out, caps);
  AttentionParams params{};
  params.rows = args.q.rows;
  params.heads = args.heads;
  params.kv_heads = args.kv_heads;
  params.head_dim = args.head_dim;
  params.position = args.position;
  params.window = args.window;
  params.q_offset = q.offset;
  params.q_stride = args.q.stride;
  params.out_offset = out.offset;
  params.out_stride = args.out.stride;
  params.splits = plan.splits;
  params.split_keys = plan.split_keys;
  params.scale = args.scale;
  params.softcap = args.softcap;
  params.sink_base = args.sink_base;
  const uint64_t bytes = kv_bytes(args.cache.capacity, args.cache.width, args.cache.element);
  const gpu::Binding parts{args.scratch, 0, plan.scratch_bytes};
  std::vector<gpu::Binding> bindings{q.binding, {args.cache.k, 0, bytes}, {args.cache.v, 0, bytes}};
  if (sinks) bindings.push_back({args.sinks});
  bindings.push_back(split ? parts : out.binding);
  commands.dispatch(*pipeline, bindings, gpu::as_params(params), plan.grid);
  if (!split) return {};

  DOPPLER_TRY(const gpu::Pipeline* combine,
              kernel_pipeline(device, "attention/combine", "attention/attention_combine.wgsl", Defines()));
  const gpu::Binding joined[] = {parts, out.binding};
  commands.dispatch(*combine, joined, gpu::as_params(params), {args.heads, args.q.rows, 1});
  return {};
}

Result<void> run_attention(gpu::Device& device, const AttentionArgs& args) {
  return run_now(device, "attention", record_attention, args);
}

}  // namespace doppler::kernels
