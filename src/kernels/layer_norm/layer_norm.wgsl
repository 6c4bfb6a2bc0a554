// out = (x - mean) * inverseSqrt(variance + eps) * weight + bias, one workgroup per row. The variance is taken of
// x - mean, in a second pass over the row: of squares alone nothing would be left where the mean is large.
struct Params {
  rows: u32, width: u32, x_offset: u32, x_stride: u32,
  out_offset: u32, out_stride: u32, weight_base: u32, bias_base: u32,
  eps: f32, grid_x: u32, pad0: u32, pad1: u32,
}

@group(0) @binding(next) var<storage, read> x: array<VALUE>;  // [rows, x_stride]
@group(0) @binding(next) var<storage, read> weight: array<VALUE>;  // [width]
@group(0) @binding(next) var<storage, read> bias: array<VALUE>;  // [width]
@group(0) @binding(next) var<storage, read_write> out: array<VALUE>;  // [rows, out_stride]
@group(0) @binding(next) var<uniform> p: Params;

#include "common/workgroup_sum.wgsl"

fn lanes_sum(v: VALUE) -> f32 {
#if VEC4
  return dot(v, vec4<f32>(1.0));
#else
  return v;
#endif
}

@compute @workgroup_size(WORKGROUP)
fn main(@builtin(workgroup_id) wg: vec3<u32>, @builtin(local_invocation_index) thread: u32) {
  // Beyond the last row a workgroup computes that one again and stores nothing: barriers want all threads.
  let id = wg.y * p.grid_x + wg.x;
  let row = min(id, p.rows - 1u);
  // In steps of one VALUE.
  let n = p.width / LANES;
  let x_at = (p.x_offset + row * p.x_stride) / LANES;
  let out_at = (p.out_offset + row * p.out_stride) / LANES;
  var sum = VALUE();
  for (var i = thread; i < n; i += WORKGROUP) {
    sum += x[x_at + i];
  }
  let mean = workgroup_sum(lanes_sum(sum), thread) / f32(p.width);
  var squares = VALUE();
  for (var i = thread; i < n; i += WORKGROUP) {
    let d = x[x_at + i] - mean;
    squares += d * d;
  }
  let factor = inverseSqrt(workgroup_sum(lanes_sum(squares), thread) / f32(p.width) + p.eps);
  if (id >= p.rows) {
    return;
  }
  for (var i = thread; i < n; i += WORKGROUP) {
    let at = p.weight_base / LANES + i;
    out[out_at + i] = (x[x_at + i] - mean) * factor * weight[at] + bias[p.bias_base / LANES + i];
  }
}
