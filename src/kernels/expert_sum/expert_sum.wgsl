// out = sum over slots s of weight[s] * in[s]; a row of `in` is [top_k, width]. One thread per VALUE of out.
struct Params {
  rows: u32, width: u32, top_k: u32, grid_x: u32,
  in_offset: u32, in_stride: u32, routes_offset: u32, routes_stride: u32,
  out_offset: u32, out_stride: u32, pad0: u32, pad1: u32,
}

@group(0) @binding(next) var<storage, read> in: array<VALUE>;  // [rows, in_stride]
@group(0) @binding(next) var<storage, read> routes: array<f32>;  // [rows, routes_stride]: experts, then weights
@group(0) @binding(next) var<storage, read_write> out: array<VALUE>;  // [rows, out_stride]
@group(0) @binding(next) var<uniform> p: Params;

@compute @workgroup_size(WORKGROUP)
fn main(@builtin(workgroup_id) wg: vec3<u32>, @builtin(local_invocation_index) thread: u32) {
  let id = (wg.y * p.grid_x + wg.x) * WORKGROUP + thread;
  let n = p.width / LANES;
  if (id >= p.rows * n) {
    return;
  }
  let row = id / n;
  let c = id % n;
  let weights = p.routes_offset + row * p.routes_stride + p.top_k;
  var at = (p.in_offset + row * p.in_stride) / LANES + c;
  var sum = VALUE();
  for (var s = 0u; s < p.top_k; s++) {
    sum += routes[weights + s] * in[at];
    at += n;
  }
  out[(p.out_offset + row * p.out_stride) / LANES + c] = sum;
}
