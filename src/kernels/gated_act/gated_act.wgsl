// out = act(gate) * up; a row of `in` is [gate | up]. One thread per VALUE of out.
struct Params {
  rows: u32, width: u32, in_offset: u32, in_stride: u32,
  out_offset: u32, out_stride: u32, grid_x: u32, pad: u32,
}

@group(0) @binding(next) var<storage, read> in: array<VALUE>;  // [rows, in_stride]
@group(0) @binding(next) var<storage, read_write> out: array<VALUE>;  // [rows, out_stride]
@group(0) @binding(next) var<uniform> p: Params;

fn act(x: VALUE) -> VALUE {
#if SILU
  return x / (VALUE(1.0) + exp(-x));
#else
  // 0.5 x (1 + tanh(sqrt(2/pi) (x + 0.044715 x^3))); beyond 10 tanh is 1, and some drivers overflow in it.
  let inner = 0.7978845608028654 * (x + 0.044715 * x * x * x);
  return 0.5 * x * (VALUE(1.0) + tanh(clamp(inner, VALUE(-10.0), VALUE(10.0))));
#endif
}

@compute @workgroup_size(WORKGROUP)
fn main(@builtin(workgroup_id) wg: vec3<u32>, @builtin(local_invocation_index) thread: u32) {
  let id = (wg.y * p.grid_x + wg.x) * WORKGROUP + thread;
  let n = p.width / LANES;
  if (id >= p.rows * n) {
    return;
  }
  let row = id / n;
  let c = id % n;
  let gate = (p.in_offset + row * p.in_stride) / LANES + c;
  out[(p.out_offset + row * p.out_stride) / LANES + c] = act(in[gate]) * in[gate + n];
}
