// out = x / max(|x|, eps), one workgroup per row.
struct Params {
  rows: u32, width: u32, x_offset: u32, x_stride: u32,
  out_offset: u32, out_stride: u32, eps: f32, grid_x: u32,
}

@group(0) @binding(next) var<storage, read> x: array<f32>;  // [rows, x_stride]
@group(0) @binding(next) var<storage, read_write> out: array<f32>;  // [rows, out_stride]
@group(0) @binding(next) var<uniform> p: Params;

#include "common/workgroup_sum.wgsl"

@compute @workgroup_size(WORKGROUP)
fn main(@builtin(workgroup_id) wg: vec3<u32>, @builtin(local_invocation_index) thread: u32) {
  // Beyond the last row a workgroup computes that one again and stores nothing: barriers want all threads.
  let id = wg.y * p.grid_x + wg.x;
  let row = min(id, p.rows - 1u);
  let x_at = p.x_offset + row * p.x_stride;
  var squares = 0.0;
  for (var i = thread; i < p.width; i += WORKGROUP) {
    squares += x[x_at + i] * x[x_at + i];
  }
  let factor = 1.0 / max(sqrt(workgroup_sum(squares, thread)), p.eps);
  if (id >= p.rows) {
    return;
  }
  for (var i = thread; i < p.width; i += WORKGROUP) {
    out[p.out_offset + row * p.out_stride + i] = x[x_at + i] * factor;
  }
}
