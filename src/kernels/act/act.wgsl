// out = act(in). One thread per VALUE.
struct Params {
  rows: u32, width: u32, in_offset: u32, in_stride: u32,
  out_offset: u32, out_stride: u32, grid_x: u32, pad: u32,
}

@group(0) @binding(next) var<storage, read> in: array<VALUE>;  // [rows, in_stride]
@group(0) @binding(next) var<storage, read_write> out: array<VALUE>;  // [rows, out_stride]
@group(0) @binding(next) var<uniform> p: Params;

#include "common/activation.wgsl"

@compute @workgroup_size(WORKGROUP)
fn main(@builtin(workgroup_id) wg: vec3<u32>, @builtin(local_invocation_index) thread: u32) {
  let id = (wg.y * p.grid_x + wg.x) * WORKGROUP + thread;
  let n = p.width / LANES;
  if (id >= p.rows * n) {
    return;
  }
  let row = id / n;
  let c = id % n;
  out[(p.out_offset + row * p.out_stride) / LANES + c] = act(in[(p.in_offset + row * p.in_stride) / LANES + c]);
}
