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

#include "quantize_act/quantize_group.wgsl"

@compute @workgroup_size(WORKGROUP)
fn main(@builtin(workgroup_id) wg: vec3<u32>, @builtin(local_invocation_index) thread: u32) {
  let id = (wg.y * p.grid_x + wg.x) * WORKGROUP + thread;
  if (id >= p.rows * p.groups) {
    return;
  }
  let row = id / p.groups;
  let first = (id % p.groups) * 8u;
#unroll i 8
  let x{i} = x_vec4(row, first + {i}u);
#end
  quantize_group(id, x0, x1, x2, x3, x4, x5, x6, x7);
}
