// out[i] = scale * table[ids[i]], unpacked. One thread per id and 32-value group.
struct Params {
  count: u32, columns: u32, groups: u32, first_row: u32,
  w_rows: u32, out_offset: u32, out_stride: u32, ids_offset: u32,
  lo_words: u32, hi_words: u32, scale_words: u32, super_words: u32,
  scale_start: u32, super_start: u32, grid_x: u32, scale: f32,
}

#include "weights/common.wgsl"
@group(0) @binding(next) var<storage, read> ids: array<u32>;
@group(0) @binding(next) var<storage, read_write> out: array<f32>;  // [count, out_stride]
@group(0) @binding(next) var<uniform> p: Params;

#include WEIGHT_FILE

@compute @workgroup_size(WORKGROUP)
fn main(@builtin(workgroup_id) wg: vec3<u32>, @builtin(local_invocation_index) thread: u32) {
  let work = (wg.y * p.grid_x + wg.x) * WORKGROUP + thread;
  if (work >= p.count * p.groups) {
    return;
  }
  let i = work / p.groups;
  let g = work % p.groups;
  let id = ids[p.ids_offset + i];
  if (id < p.first_row || id - p.first_row >= p.w_rows) {
    return;  // another part's row
  }
  let row = id - p.first_row;
  let w = w_load(row, g);
  let s = w_scale(row, g);
  let low = w_low(w);
  let high = w_high(w);
  let at = p.out_offset + i * p.out_stride + g * 32u;
  let left = p.columns - g * 32u;
#unroll c 4
#unroll k 4
  if ({c}u * 4u + {k}u < left) {
    out[at + {c}u * 4u + {k}u] = (low[{c}][{k}] * s.s.x + s.m.x) * p.scale;
  }
  if (16u + {c}u * 4u + {k}u < left) {
    out[at + 16u + {c}u * 4u + {k}u] = (high[{c}][{k}] * s.s.y + s.m.y) * p.scale;
  }
#end
#end
}
