#include "kernels/route/route.h"

#include "kernels/common/record.h"

namespace doppler::kernels {

Result<void> record_route(gpu::Device& device, gpu::Commands& commands, const RouteArgs& args) {
  const gpu::Caps& caps = device.caps();
  const uint32_t rows = args.logits.rows, experts = args.logits.width, top_k = args.out.width / 2;
  DOPPLER_CHECK_OK(check_matrix("route", "logits", args.logits));
  DOPPLER_CHECK_OK(check_shape("route", "out", args.out, rows, 2ull * top_k));
  DOPPLER_CHECK_OK(check_apart("route", "logits", args.logits, args.out));
  if (experts > kMaxExperts || top_k > kMaxTopK)
    return fail(ErrorCode::kUnsupported, "[route] at most {} of {} experts wanted, got {} of {}", kMaxTopK,
                kMaxExperts, top_k, experts);
  if (top_k > experts)
    return fail(ErrorCode::kBadInput, "[route] at most {} experts a row wanted, got {}", experts, top_k);
  const RoutePlan plan = plan_route(rows, experts, caps);
  const bool all = args.routing == graph::Routing::kSoftmaxOverAll;
  Defines defines;
  defines.number("WORKGROUP", plan.workgroup).number("MAX_EXPERTS", kMaxExperts);
  defines.number("MAX_TOP_K", kMaxTopK).flag("OVER_ALL", all);
  const std::string label = fmt::format("route/{}/wg{}", all ? "all" : "chosen", plan.workgroup);
  DOPPLER_TRY(const gpu::Pipeline* pipeline, kernel_pipeline(device, label, "route/route.wgsl", defines));
  const BoundMatrix in = bind_matrix(args.logits, caps), out = bind_matrix(args.out, caps);
  const RouteParams params{rows,       experts,        top_k, plan.grid[0], in.offset, args.logits.stride,
                           out.offset, args.out.stride};
  const gpu::Binding bindings[] = {in.binding, out.binding};
  commands.dispatch(*pipeline, bindings, gpu::as_params(params), plan.grid);
  return {};
}

Result<void> run_route(gpu::Device& device, const RouteArgs& args) {
  return run_now(device, "route", record_route, args);
}

}  // namespace doppler::kernels
