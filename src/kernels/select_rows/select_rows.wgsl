// out[r] = in[first + r], or in[rows[first + r]] with INDEXED. One thread per element.
struct Params {
  rows: u32, width: u32, in_offset: u32, in_stride: u32,
  out_offset: u32, out_stride: u32, first: u32, grid_x: u32,
}

@group(0) @binding(next) var<storage, read> in: array<f32>;  // [.., in_stride]
#if INDEXED
@group(0) @binding(next) var<storage, read> rows: array<u32>;
#endif
@group(0) @binding(next) var<storage, read_write> out: array<f32>;  // [rows, out_stride]
@group(0) @binding(next) var<uniform> p: Params;

@compute @workgroup_size(WORKGROUP)
fn main(@builtin(workgroup_id) wg: vec3<u32>, @builtin(local_invocation_index) thread: u32) {
  let id = (wg.y * p.grid_x + wg.x) * WORKGROUP + thread;
  if (id >= p.rows * p.width) {
    return;
  }
  let r = id / p.width;
  let c = id % p.width;
#if INDEXED
  let source = rows[p.first + r];
#else
  let source = p.first + r;
#endif
  out[p.out_offset + r * p.out_stride + c] = in[p.in_offset + source * p.in_stride + c];
}
