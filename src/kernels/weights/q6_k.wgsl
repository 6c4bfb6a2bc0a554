#include "weights/quants.wgsl"

// 6 bits a value, two's complement of q - 32, in the top bits of each byte: 4 (q - 32). Two bits of value 4 w + b of a
// half group are bits 2 w, 2 w + 1 of byte b of that half's hi word.
fn w_load(row: u32, g: u32) -> Raw {
  let v = lo[row * (p.lo_words / 4u) + g];
  let h = row * p.hi_words + g * 2u;
  let ha = vec4<u32>(aux[h]) >> vec4<u32>(0u, 2u, 4u, 6u);
  let hb = vec4<u32>(aux[h + 1u]) >> vec4<u32>(0u, 2u, 4u, 6u);
  return Raw(((v << vec4<u32>(2u)) & vec4<u32>(0x3c3c3c3cu)) | ((ha & vec4<u32>(0x03030303u)) << vec4<u32>(6u)),
             ((v >> vec4<u32>(2u)) & vec4<u32>(0x3c3c3c3cu)) | ((hb & vec4<u32>(0x03030303u)) << vec4<u32>(6u)));
}

// An int8 scale for each half of a group, times f16 d per 256 values.
fn w_scale(row: u32, g: u32) -> Scale {
  let d = unpack2x16float(aux[p.super_start + row * p.super_words + (g >> 3u)]).x * 0.25;
  let bits = w_bits16(row, g);
  let s = vec2<i32>(extractBits(i32(bits), 0u, 8u), extractBits(i32(bits), 8u, 8u));
  return Scale(d * vec2<f32>(s), vec2<f32>());
}
