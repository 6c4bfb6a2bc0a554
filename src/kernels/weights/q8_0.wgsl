#include "weights/quants.wgsl"

fn w_load(row: u32, g: u32) -> Raw {
  let at = row * (p.lo_words / 4u) + g * 2u;
  return Raw(lo[at], lo[at + 1u]);
}

fn w_scale(row: u32, g: u32) -> Scale {
  let d = unpack2x16float(w_bits16(row, g)).x;
  return Scale(vec2<f32>(d, d), vec2<f32>());
}
