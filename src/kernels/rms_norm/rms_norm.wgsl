// out = x * inverseSqrt(mean(x^2) + eps) * (weight + weight_offset), one workgroup per group of `width` columns; with
// ADD, x = a + b first, kept in `sum`.
struct Params {
  rows: u32, groups: u32, width: u32, x_stride: u32,
  x_offset: u32, out_stride: u32, out_offset: u32, weight_base: u32,
  b_offset: u32, b_stride: u32, sum_offset: u32, sum_stride: u32,
  eps: f32, weight_offset: f32, grid_x: u32, pad: u32,
}

#if !X_IN_PLACE
@group(0) @binding(next) var<storage, read> x: array<VALUE>;  // [rows, x_stride]
#endif
#if B
@group(0) @binding(next) var<storage, read> b: array<VALUE>;  // [rows, b_stride]
#endif
#if ADD
@group(0) @binding(next) var<storage, read_write> sum: array<VALUE>;  // [rows, sum_stride]
#endif
@group(0) @binding(next) var<storage, read> weight: array<VALUE>;  // [width]
@group(0) @binding(next) var<storage, read_write> out: array<VALUE>;  // [rows, out_stride]
@group(0) @binding(next) var<uniform> p: Params;

#include "common/workgroup_sum.wgsl"

@compute @workgroup_size(WORKGROUP)
fn main(@builtin(workgroup_id) wg: vec3<u32>, @builtin(local_invocation_index) thread: u32) {
  // Beyond the last group a workgroup computes that one again and stores nothing: barriers want all threads.
  let id = wg.y * p.grid_x + wg.x;
  let live = id < p.rows * p.groups;
  let group = min(id, p.rows * p.groups - 1u);
  let row = group / p.groups;
  let column = group % p.groups * p.width;
  // In steps of one VALUE.
  let n = p.width / LANES;
  let x_at = (p.x_offset + row * p.x_stride + column) / LANES;
  let out_at = (p.out_offset + row * p.out_stride + column) / LANES;
  let weight_at = p.weight_base / LANES;
#if ADD
  let b_at = (p.b_offset + row * p.b_stride) / LANES;
  let sum_at = (p.sum_offset + row * p.sum_stride) / LANES;
#endif
  var squares = VALUE();
  for (var i = thread; i < n; i += WORKGROUP) {
#if ADD
#if X_IN_PLACE
    let v = sum[sum_at + i] + b[b_at + i];
#else
    let v = x[x_at + i] + b[b_at + i];
#endif
    if (live) {
      sum[sum_at + i] = v;
    }
#else
#if X_IN_PLACE
    let v = out[out_at + i];
#else
    let v = x[x_at + i];
#endif
#endif
    squares += v * v;
  }
#if VEC4
  let mean = workgroup_sum(dot(squares, vec4<f32>(1.0)), thread) / f32(p.width);
#else
  let mean = workgroup_sum(squares, thread) / f32(p.width);
#endif
  let factor = inverseSqrt(mean + p.eps);
  if (!live) {
    return;
  }
  for (var i = thread; i < n; i += WORKGROUP) {
#if ADD
    let v = sum[sum_at + i];
#else
#if X_IN_PLACE
    let v = out[out_at + i];
#else
    let v = x[x_at + i];
#endif
#endif
    out[out_at + i] = v * factor * (weight[weight_at + i] + p.weight_offset);
  }
}
