#include "weights/quants.wgsl"
#include "weights/codes_iq4.wgsl"

// A 6-bit scale a group. 2 words per 256 values, 4 scales a word; their top bytes hold f16 d.
fn w_scale(row: u32, g: u32) -> Scale {
  let at = p.scale_start + row * p.scale_words + (g >> 3u) * 2u;
  let d = unpack2x16float((aux[at] >> 24u) | ((aux[at + 1u] >> 24u) << 8u)).x;
  let bits = (aux[at + ((g >> 2u) & 1u)] >> ((g & 3u) * 6u)) & 63u;
  let s = d * (f32(bits) - 32.0);
  return Scale(vec2<f32>(s, s), vec2<f32>());
}
