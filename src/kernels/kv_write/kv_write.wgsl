// Appends rows of K and V to a layer's cache at positions `position`, `position` + 1, …. One thread per row and four
// columns of both.
struct Params {
  rows: u32, width: u32, position: u32, grid_x: u32,
  k_offset: u32, k_stride: u32, v_offset: u32, v_stride: u32,
}

@group(0) @binding(next) var<storage, read> k: array<f32>;  // [rows, k_stride]
@group(0) @binding(next) var<storage, read> v: array<f32>;  // [rows, v_stride]
@group(0) @binding(next) var<storage, read_write> k_cache: array<WORDS>;  // [capacity, width / 4]
@group(0) @binding(next) var<storage, read_write> v_cache: array<WORDS>;
@group(0) @binding(next) var<uniform> p: Params;

#include "kv_write/words.wgsl"

@compute @workgroup_size(WORKGROUP)
fn main(@builtin(workgroup_id) wg: vec3<u32>, @builtin(local_invocation_index) thread: u32) {
  let id = (wg.y * p.grid_x + wg.x) * WORKGROUP + thread;
  let quads = p.width / 4u;
  if (id >= p.rows * quads) {
    return;
  }
  let row = id / quads;
  let column = id % quads * 4u;
  let from_k = p.k_offset + row * p.k_stride + column;
  let from_v = p.v_offset + row * p.v_stride + column;
  let to = p.position * quads + id;
  k_cache[to] = words(k[from_k], k[from_k + 1u], k[from_k + 2u], k[from_k + 3u]);
  v_cache[to] = words(v[from_v], v[from_v + 1u], v[from_v + 2u], v[from_v + 3u]);
}
