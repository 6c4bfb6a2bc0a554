#include "weights/quants.wgsl"

// 4-bit floats, doubled: codes 0..7 are 0 1 2 3 4 6 8 12, bit 3 is the sign (the packer leaves no minus zero, whose
// two's complement would carry into the next byte).
fn w_decode(codes: vec4<u32>) -> vec4<u32> {
  let ones = vec4<u32>(0x01010101u);
  let four = codes >> vec4<u32>(2u);                        // bit 0: 4 to 7
  let odd = codes & four & ones;                            // 5 and 7
  let upper = (codes >> vec4<u32>(1u)) & four & ones;       // 6 and 7
  let magnitude = (codes & vec4<u32>(0x07070707u)) + odd + ((upper + (odd & upper)) << vec4<u32>(1u));
  let sign = (codes >> vec4<u32>(3u)) & ones;
  return (magnitude ^ (sign * vec4<u32>(255u))) + sign;
}

fn w_load(row: u32, g: u32) -> Raw {
  let v = lo[row * (p.lo_words / 4u) + g];
  return Raw(w_decode(v), w_decode(v >> vec4<u32>(4u)));
}

// A byte a group: the exponent of the scale, which is 2^(exponent - 128).
fn w_scale(row: u32, g: u32) -> Scale {
  let bits = aux[p.scale_start + row * p.scale_words + (g >> 2u)];
  let exponent = (bits >> ((g & 3u) * 8u)) & 255u;
  let s = bitcast<f32>(select((exponent - 1u) << 23u, 0x00200000u << exponent, exponent < 2u));
  return Scale(vec2<f32>(s, s), vec2<f32>());
}
