// (a, b) -> (a cos - b sin, b cos + a sin) for each pair of a head, in place. One thread per row, head and pair.
struct Params {
  rows: u32, heads: u32, head_dim: u32, pairs: u32,
  offset: u32, stride: u32, table_row: u32, grid_x: u32,
}

@group(0) @binding(next) var<storage, read> table: array<vec2<f32>>;  // [positions, pairs]: cos, sin
@group(0) @binding(next) var<storage, read_write> x: array<f32>;  // [rows, stride]
@group(0) @binding(next) var<uniform> p: Params;

@compute @workgroup_size(WORKGROUP)
fn main(@builtin(workgroup_id) wg: vec3<u32>, @builtin(local_invocation_index) thread: u32) {
  let id = (wg.y * p.grid_x + wg.x) * WORKGROUP + thread;
  if (id >= p.rows * p.heads * p.pairs) {
    return;
  }
  let pair = id % p.pairs;
  let head = id / p.pairs % p.heads;
  let row = id / p.pairs / p.heads;
  let start = p.offset + row * p.stride + head * p.head_dim;
#if INTERLEAVED
  let first = start + pair * 2u;
  let second = first + 1u;
#else
  let first = start + pair;
  let second = first + p.pairs;
#endif
  let turn = table[(p.table_row + row) * p.pairs + pair];
  let a = x[first];
  let b = x[second];
  x[first] = a * turn.x - b * turn.y;
  x[second] = b * turn.x + a * turn.y;
}
