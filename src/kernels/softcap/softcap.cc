#include "kernels/softcap/softcap.h"

#include "kernels/common/record.h"

namespace doppler::kernels {

Result<void> record_softcap(gpu::Device& device, gpu::Commands& commands, const SoftcapArgs& args) {
  const gpu::Caps& caps = device.caps();
  DOPPLER_CHECK_OK(check_matrix("softcap", "x", args.x));
  if (!(args.cap > 0)) return fail(ErrorCode::kBadInput, "[softcap] a cap above 0 wanted, got {}", args.cap);
  const SoftcapPlan plan = plan_softcap(args.x.rows, args.x.width, caps);
  Defines defines;
  defines.number("WORKGROUP", plan.workgroup);
  DOPPLER_TRY(const gpu::Pipeline* pipeline,
              kernel_pipeline(device, "softcap", "softcap/softcap.wgsl", defines));
  const BoundMatrix x = bind_matrix(args.x, caps);
  const SoftcapParams params{args.x.rows, args.x.width, x.offset, args.x.stride, args.cap, plan.grid[0]};
  commands.dispatch(*pipeline, std::span(&x.binding, 1), gpu::as_params(params), plan.grid);
  return {};
}

Result<void> run_softcap(gpu::Device& device, const SoftcapArgs& args) {
  return run_now(device, "softcap", record_softcap, args);
}

}  // namespace doppler::kernels
