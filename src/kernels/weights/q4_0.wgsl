#include "weights/quants.wgsl"

// 4 bits a value, two's complement of q - 8, read from the top of each byte: 16 (q - 8).
fn w_load(row: u32, g: u32) -> Raw {
  let v = lo[row * (p.lo_words / 4u) + g];
  return Raw((v << vec4<u32>(4u)) & vec4<u32>(0xf0f0f0f0u), v & vec4<u32>(0xf0f0f0f0u));
}

fn w_scale(row: u32, g: u32) -> Scale {
  let d = unpack2x16float(w_bits16(row, g)).x * 0.0625;
  return Scale(vec2<f32>(d, d), vec2<f32>());
}
