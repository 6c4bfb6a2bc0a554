// Per row and 32 columns: s = max|x| / 127, q = round(x / s). One thread per group.
struct Params {
  rows: u32, columns: u32, groups: u32, stride: u32,
  offset: u32, grid_x: u32, pad0: u32, pad1: u32,
}

#if X_VEC4
@group(0) @binding(next) var<storage, read> x: array<vec4<f32>>;  // [rows, stride / 4]
#else
@group(0) @binding(next) var<storage, read> x: array<f32>;  // [rows, stride]
#endif
@group(0) @binding(next) var<storage, read_write> quants: array<vec4<u32>>;  // [rows, groups, 2]
@group(0) @binding(next) var<storage, read_write> scales: array<vec2<f32>>;  // [rows, groups]: s, s * sum of q
@group(0) @binding(next) var<uniform> p: Params;

// Columns [4 i, 4 i + 4) of a row; zero beyond `columns`.
fn x_vec4(row: u32, i: u32) -> vec4<f32> {
#if X_VEC4
  if (i * 4u < p.columns) {
    return x[(p.offset + row * p.stride) / 4u + i];
  }
  return vec4<f32>();
#else
  var v = vec4<f32>();
  for (var k = 0u; k < 4u; k++) {
    if (i * 4u + k < p.columns) {
      v[k] = x[p.offset + row * p.stride + i * 4u + k];
    }
  }
  return v;
#endif
}

@compute @workgroup_size(WORKGROUP)
fn main(@builtin(workgroup_id) wg: vec3<u32>, @builtin(local_invocation_index) thread: u32) {
  let id = (wg.y * p.grid_x + wg.x) * WORKGROUP + thread;
  if (id >= p.rows * p.groups) {
    return;
  }
  let row = id / p.groups;
  let first = (id % p.groups) * 8u;
  var most = vec4<f32>();
#unroll i 8
  let x{i} = x_vec4(row, first + {i}u);
  most = max(most, abs(x{i}));
#end
  let peak = max(max(most.x, most.y), max(most.z, most.w));
  // Below 1e-30 the inverse would overflow; such a group counts as zero.
  let inverse = select(0.0, 127.0 / peak, peak > 1e-30);
  var sum = vec4<i32>();
#unroll i 8
  let q{i} = vec4<i32>(round(x{i} * inverse));
  sum += q{i};
#end
  quants[id * 2u] = vec4<u32>(pack4xI8(q0), pack4xI8(q1), pack4xI8(q2), pack4xI8(q3));
  quants[id * 2u + 1u] = vec4<u32>(pack4xI8(q4), pack4xI8(q5), pack4xI8(q6), pack4xI8(q7));
  let s = peak / 127.0;
  scales[id] = vec2<f32>(s, s * f32(sum.x + sum.y + sum.z + sum.w));
}
