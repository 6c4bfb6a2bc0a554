// out = act(gate) * up; with CLAMPED, g sigmoid(alpha g) (u + 1) of g = min(gate, limit), u = clamp(up, -limit, limit). A
// row of `in` is groups of 2 * half columns: [gate | up], with INTERLEAVED gate and up in turns. One thread per VALUE of
// out.
struct Params {
  rows: u32, width: u32, in_offset: u32, in_stride: u32,
  out_offset: u32, out_stride: u32, half: u32, grid_x: u32,
  limit: f32, alpha: f32, pad0: u32, pad1: u32,
}

@group(0) @binding(next) var<storage, read> in: array<VALUE>;  // [rows, in_stride]
@group(0) @binding(next) var<storage, read_write> out: array<VALUE>;  // [rows, out_stride]
@group(0) @binding(next) var<uniform> p: Params;

#if CLAMPED
fn gated(gate: VALUE, up: VALUE) -> VALUE {
  let g = min(gate, VALUE(p.limit));
  let u = clamp(up, VALUE(-p.limit), VALUE(p.limit));
  return g / (1.0 + exp(-p.alpha * g)) * (u + 1.0);
}
#else
#include "common/activation.wgsl"

fn gated(gate: VALUE, up: VALUE) -> VALUE {
  return act(gate) * up;
}
#endif

@compute @workgroup_size(WORKGROUP)
fn main(@builtin(workgroup_id) wg: vec3<u32>, @builtin(local_invocation_index) thread: u32) {
  let id = (wg.y * p.grid_x + wg.x) * WORKGROUP + thread;
  let n = p.width / LANES;
  if (id >= p.rows * n) {
    return;
  }
  let row = id / n;
  let c = id % n;
  let half = p.half / LANES;
  let group = (p.in_offset + row * p.in_stride) / LANES + c / half * half * 2u;
#if INTERLEAVED
  let a = in[group + c % half * 2u];
  let b = in[group + c % half * 2u + 1u];
#if VEC4
  let value = gated(vec4<f32>(a.x, a.z, b.x, b.z), vec4<f32>(a.y, a.w, b.y, b.w));
#else
  let value = gated(a, b);
#endif
#else
  let value = gated(in[group + c % half], in[group + c % half + half]);
#endif
  out[(p.out_offset + row * p.out_stride) / LANES + c] = value;
}
