// x = cap * tanh(x / cap), in place. One thread per element.
struct Params {
  rows: u32, width: u32, offset: u32, stride: u32,
  cap: f32, grid_x: u32, pad0: u32, pad1: u32,
}

@group(0) @binding(next) var<storage, read_write> x: array<f32>;  // [rows, stride]
@group(0) @binding(next) var<uniform> p: Params;

@compute @workgroup_size(WORKGROUP)
fn main(@builtin(workgroup_id) wg: vec3<u32>, @builtin(local_invocation_index) thread: u32) {
  let id = (wg.y * p.grid_x + wg.x) * WORKGROUP + thread;
  if (id >= p.rows * p.width) {
    return;
  }
  let at = p.offset + id / p.width * p.stride + id % p.width;
  // Beyond 10 tanh is 1, and some drivers overflow in it.
  x[at] = p.cap * tanh(clamp(x[at] / p.cap, -10.0, 10.0));
}
