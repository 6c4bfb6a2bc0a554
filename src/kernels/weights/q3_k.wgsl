#include "weights/quants.wgsl"
#include "weights/pairs.wgsl"

// 3 bits a value, two's complement of q - 4, in the top bits of each byte: 32 (q - 4). The hi word is laid out as in
// the 5-bit types.
fn w_load(row: u32, g: u32) -> Raw {
  let v = w_pairs(row, g);
  let h = aux[row * p.hi_words + g];
  let h4 = vec4<u32>(h, h >> 1u, h >> 2u, h >> 3u);
  let shift = vec4<u32>(0u, 2u, 4u, 6u);
  let a = (vec4<u32>(v.x) >> shift) & vec4<u32>(0x03030303u);
  let b = (vec4<u32>(v.y) >> shift) & vec4<u32>(0x03030303u);
  return Raw((a << vec4<u32>(5u)) | ((h4 & vec4<u32>(0x01010101u)) << vec4<u32>(7u)),
             (b << vec4<u32>(5u)) | ((h4 & vec4<u32>(0x10101010u)) << vec4<u32>(3u)));
}

// A 6-bit scale for each half of a group. 4 words per 256 values, 4 scales a word; f16 d is in the top bytes of the
// first two.
fn w_scale(row: u32, g: u32) -> Scale {
  let at = p.scale_start + row * p.scale_words + (g >> 3u) * 4u;
  let d = unpack2x16float((aux[at] >> 24u) | ((aux[at + 1u] >> 24u) << 8u)).x * 0.03125;
  let bits = aux[at + ((g >> 1u) & 3u)] >> ((g & 1u) * 12u);
  let s = vec2<f32>(vec2<u32>(bits, bits >> 6u) & vec2<u32>(63u)) - vec2<f32>(32.0);
  return Scale(d * s, vec2<f32>());
}
