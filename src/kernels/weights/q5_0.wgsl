#include "weights/quants.wgsl"

// 5 bits a value, two's complement of q - 16, in the top bits of each byte: 8 (q - 16). The hi word is laid out as in
// the unsigned 5-bit types.
fn w_load(row: u32, g: u32) -> Raw {
  let v = lo[row * (p.lo_words / 4u) + g];
  let h = aux[row * p.hi_words + g];
  let h4 = vec4<u32>(h, h >> 1u, h >> 2u, h >> 3u);
  return Raw(((v << vec4<u32>(3u)) & vec4<u32>(0x78787878u)) | ((h4 & vec4<u32>(0x01010101u)) << vec4<u32>(7u)),
             ((v >> vec4<u32>(1u)) & vec4<u32>(0x78787878u)) | ((h4 & vec4<u32>(0x10101010u)) << vec4<u32>(3u)));
}

fn w_scale(row: u32, g: u32) -> Scale {
  let d = unpack2x16float(w_bits16(row, g)).x * 0.125;
  return Scale(vec2<f32>(d, d), vec2<f32>());
}
