#include "weights/quants.wgsl"
#include "weights/codes_iq4.wgsl"

fn w_scale(row: u32, g: u32) -> Scale {
  let d = unpack2x16float(w_bits16(row, g)).x;
  return Scale(vec2<f32>(d, d), vec2<f32>());
}
