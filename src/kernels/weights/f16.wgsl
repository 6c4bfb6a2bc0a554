#include "weights/floats.wgsl"

fn w_unpack(a: vec4<u32>, b: vec4<u32>) -> mat4x4<f32> {
  return mat4x4<f32>(vec4<f32>(unpack2x16float(a.x), unpack2x16float(a.y)),
                     vec4<f32>(unpack2x16float(a.z), unpack2x16float(a.w)),
                     vec4<f32>(unpack2x16float(b.x), unpack2x16float(b.y)),
                     vec4<f32>(unpack2x16float(b.z), unpack2x16float(b.w)));
}

fn w_load(row: u32, g: u32) -> Raw {
  let at = row * (p.lo_words / 4u) + g * 4u;
  return Raw(w_unpack(lo[at], lo[at + 1u]), w_unpack(lo[at + 2u], lo[at + 3u]));
}
