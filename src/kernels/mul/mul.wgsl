// out = a * b; with ONE, b has one column, which multiplies the whole row. One thread per VALUE; IN_PLACE: a is out.
struct Params {
  rows: u32, width: u32, a_offset: u32, a_stride: u32,
  b_offset: u32, b_stride: u32, out_offset: u32, out_stride: u32,
  grid_x: u32, pad0: u32, pad1: u32, pad2: u32,
}

#if !IN_PLACE
@group(0) @binding(next) var<storage, read> a: array<VALUE>;  // [rows, a_stride]
#endif
#if ONE
@group(0) @binding(next) var<storage, read> b: array<f32>;  // [rows, b_stride]
#else
@group(0) @binding(next) var<storage, read> b: array<VALUE>;  // [rows, b_stride]
#endif
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
  let at = (p.out_offset + row * p.out_stride) / LANES + c;
#if IN_PLACE
  let left = out[at];
#else
  let left = a[(p.a_offset + row * p.a_stride) / LANES + c];
#endif
#if ONE
  out[at] = left * b[p.b_offset + row * p.b_stride];
#else
  out[at] = left * b[(p.b_offset + row * p.b_stride) / LANES + c];
#endif
}
