#include "weights/quants.wgsl"
#include "weights/pairs.wgsl"

fn w_load(row: u32, g: u32) -> Raw {
  let v = w_pairs(row, g);
  let shift = vec4<u32>(0u, 2u, 4u, 6u);
  return Raw((vec4<u32>(v.x) >> shift) & vec4<u32>(0x03030303u), (vec4<u32>(v.y) >> shift) & vec4<u32>(0x03030303u));
}

// 4-bit scale and min for each half of a group, one byte a half, times f16 d and dmin per 256 values.
fn w_scale(row: u32, g: u32) -> Scale {
  let d = unpack2x16float(aux[p.super_start + row * p.super_words + (g >> 3u)]);
  let bits = vec4<u32>(w_bits16(row, g)) >> vec4<u32>(0u, 8u, 4u, 12u);
  let v = vec4<f32>(bits & vec4<u32>(15u));
  return Scale(d.x * v.xy, -d.y * v.zw);
}
