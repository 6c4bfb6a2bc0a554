// Params, weights, x and out of both linear kernels.
struct Params {
  x_rows: u32, columns: u32, groups: u32, w_rows: u32,
  x_offset: u32, x_stride: u32, out_offset: u32, out_stride: u32,
  lo_words: u32, hi_words: u32, scale_words: u32, super_words: u32,
  scale_start: u32, super_start: u32, grid_x: u32, bias_offset: u32,
}

#include "weights/common.wgsl"
#include "linear/x_io.wgsl"
#if BIAS
@group(0) @binding(next) var<storage, read> bias: array<f32>;  // [w_rows]
#endif
@group(0) @binding(next) var<storage, read_write> out: array<f32>;  // [x_rows, out_stride]
@group(0) @binding(next) var<uniform> p: Params;

#include WEIGHT_FILE

fn store(x_row: u32, w_row: u32, value: f32) {
#if BIAS
  out[p.out_offset + x_row * p.out_stride + w_row] = value + bias[p.bias_offset + w_row];
#else
  out[p.out_offset + x_row * p.out_stride + w_row] = value;
#endif
}
