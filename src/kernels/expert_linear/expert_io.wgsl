// Params, weights, x and out of both expert kernels. A use is (row of x, slot): use = row * top_k + slot. The weights are
// whole experts, one below the other; a buffer holds `held` of them, from place `first` on.
struct Params {
  uses: u32, columns: u32, groups: u32, w_rows: u32,  // w_rows: of one expert
  x_offset: u32, x_stride: u32, out_offset: u32, out_stride: u32,
  lo_words: u32, hi_words: u32, scale_words: u32, super_words: u32,
  scale_start: u32, super_start: u32, grid_x: u32, x_uses: u32,  // x_uses: uses that read one row of x
  top_k: u32, slot_width: u32, first: u32, held: u32,  // slot_width: columns of out from one slot to the next
  routes_offset: u32, routes_stride: u32, tiles: u32, pad: u32,
}

#include "weights/common.wgsl"
#include "linear/x_io.wgsl"
#if BIAS
@group(0) @binding(next) var<storage, read> bias: array<f32>;  // [held, w_rows]
#endif
#if PLACED
@group(0) @binding(next) var<storage, read> places: array<u32>;  // [experts]: where each is; 0xffffffff: not there
#endif
#if TILED
@group(0) @binding(next) var<storage, read> groups: array<u32>;  // [tiles, 4], [uses]: expert_group.wgsl
#else
@group(0) @binding(next) var<storage, read> routes: array<f32>;  // [rows, routes_stride]: experts, then weights
#endif
@group(0) @binding(next) var<storage, read_write> out: array<f32>;  // [rows, out_stride]
@group(0) @binding(next) var<uniform> p: Params;

#include WEIGHT_FILE

// Which of the buffer's experts this is; `held` or more: it is not among them.
fn held_expert(expert: u32) -> u32 {
#if PLACED
  return places[expert] - p.first;
#else
  return expert - p.first;
#endif
}

fn store(use_id: u32, expert: u32, w_row: u32, value: f32) {
  let at = p.out_offset + use_id / p.top_k * p.out_stride + use_id % p.top_k * p.slot_width + w_row;
#if BIAS
  out[at] = value + bias[expert * p.w_rows + w_row];
#else
  out[at] = value;
#endif
}
