#include "weights/floats.wgsl"

// The even value of a word is its low half.
fn w_pairs(v: vec2<u32>) -> vec4<f32> {
  return bitcast<vec4<f32>>(vec4<u32>(v.x << 16u, v.x & 0xffff0000u, v.y << 16u, v.y & 0xffff0000u));
}

fn w_unpack(a: vec4<u32>, b: vec4<u32>) -> mat4x4<f32> {
  return mat4x4<f32>(w_pairs(a.xy), w_pairs(a.zw), w_pairs(b.xy), w_pairs(b.zw));
}

fn w_load(row: u32, g: u32) -> Raw {
  let at = row * (p.lo_words / 4u) + g * 4u;
  return Raw(w_unpack(lo[at], lo[at + 1u]), w_unpack(lo[at + 2u], lo[at + 3u]));
}
