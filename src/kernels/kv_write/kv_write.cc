#include "kernels/kv_write/kv_write.h"

#include "kernels/common/record.h"

namespace doppler::kernels {

Result<void> check_kv(std::string_view op, const KvBuffers& cache, uint64_t positions,
                      const gpu::Caps& caps) {
  const uint64_t bytes = kv_bytes(cache.capacity, cache.width, cache.element);
  if (cache.width == 0 || cache.width % 8 != 0 || positions > cache.capacity)
    return fail(ErrorCode::kBadInput,
                "[{}] cache: a width of whole eights and {} positions wanted, got {} x {}", op, positions,
                cache.capacity, cache.width);
  if (cache.k == nullptr || cache.v == nullptr || cache.k == cache.v || cache.k->bytes() < bytes ||
      cache.v->bytes() < bytes)
    return fail(ErrorCode::kBadInput, "[{}] cache: two buffers of {} bytes wanted", op, bytes);
  if (bytes > caps.max_binding_bytes)
    return fail(ErrorCode::kBadInput,
                "[{}] cache: {} bytes exceed the binding limit of {}; use a shorter context", op, bytes,
                caps.max_binding_bytes);
  return {};
}

Result<void> record_kv_write(gpu::Device& device, gpu::Commands& commands, const KvWriteArgs& args) {
  const gpu::Caps& caps = device.caps();
  const uint32_t rows = args.k.rows, width = args.cache.width;
  DOPPLER_CHECK_OK(check_shape("kv_write", "k", args.k, rows, width));
  DOPPLER_CHECK_OK(check_shape("kv_write", "v", args.v, rows, width));
  DOPPLER_CHECK_OK(check_kv("kv_write", args.cache, uint64_t{args.position} + rows, caps));
  const KvWritePlan plan = plan_kv_write(rows, width, caps);
  const bool f16 = args.cache.element == KvElement::kF16;
  Defines defines;
  defines.number("WORKGROUP", plan.workgroup)
      .flag("F16_CACHE", f16)
      .set("WORDS", f16 ? "vec2<u32>" : "vec4<f32>");
  DOPPLER_TRY(const gpu::Pipeline* pipeline, kernel_pipeline(device, f16 ? "kv_write/f16" : "kv_write/f32",
                                                             "kv_write/kv_write.wgsl", defines));
  const BoundMatrix k = bind_matrix(args.k, caps), v = bind_matrix(args.v, caps);
  const KvWriteParams params{rows,     width,         args.position, plan.grid[0],
                             k.offset, args.k.stride, v.offset,      args.v.stride};
  const uint64_t bytes = kv_bytes(args.cache.capacity, width, args.cache.element);
  const gpu::Binding bindings[] = {k.binding, v.binding, {args.cache.k, 0, bytes}, {args.cache.v, 0, bytes}};
  commands.dispatch(*pipeline, bindings, gpu::as_params(params), plan.grid);
  return {};
}

Result<void> run_kv_write(gpu::Device& device, const KvWriteArgs& args) {
  return run_now(device, "kv_write", record_kv_write, args);
}

}  // namespace doppler::kernels
