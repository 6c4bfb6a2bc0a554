// out[r] = in[r] + table[first + r * step], unpacked: learned positions with step 1, one row for all with step 0. One
// thread per row and 32-value group.
struct Params {
  rows: u32, columns: u32, groups: u32, part_first: u32,
  w_rows: u32, in_offset: u32, in_stride: u32, out_offset: u32,
  lo_words: u32, hi_words: u32, scale_words: u32, super_words: u32,
  scale_start: u32, super_start: u32, grid_x: u32, out_stride: u32,
  first: u32, step: u32, pad0: u32, pad1: u32,
}

#include "weights/common.wgsl"
@group(0) @binding(next) var<storage, read> in: array<f32>;  // [rows, in_stride]
@group(0) @binding(next) var<storage, read_write> out: array<f32>;  // [rows, out_stride]
@group(0) @binding(next) var<uniform> p: Params;

#include WEIGHT_FILE

@compute @workgroup_size(WORKGROUP)
fn main(@builtin(workgroup_id) wg: vec3<u32>, @builtin(local_invocation_index) thread: u32) {
  let work = (wg.y * p.grid_x + wg.x) * WORKGROUP + thread;
  if (work >= p.rows * p.groups) {
    return;
  }
  let r = work / p.groups;
  let g = work % p.groups;
  let wanted = p.first + r * p.step;
  if (wanted < p.part_first || wanted - p.part_first >= p.w_rows) {
    return;  // another part's row
  }
  let row = wanted - p.part_first;
  let w = w_load(row, g);
  let s = w_scale(row, g);
  let low = w_low(w);
  let high = w_high(w);
  let source = p.in_offset + r * p.in_stride + g * 32u;
  let to = p.out_offset + r * p.out_stride + g * 32u;
  let left = p.columns - g * 32u;
#unroll c 4
#unroll k 4
  if ({c}u * 4u + {k}u < left) {
    out[to + {c}u * 4u + {k}u] = in[source + {c}u * 4u + {k}u] + (low[{c}][{k}] * s.s.x + s.m.x);
  }
  if (16u + {c}u * 4u + {k}u < left) {
    out[to + 16u + {c}u * 4u + {k}u] = in[source + 16u + {c}u * 4u + {k}u] + (high[{c}][{k}] * s.s.y + s.m.y);
  }
#end
#end
}
