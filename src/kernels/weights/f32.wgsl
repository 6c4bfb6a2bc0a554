#include "weights/floats.wgsl"

fn w_load(row: u32, g: u32) -> Raw {
  let at = row * (p.lo_words / 4u) + g * 8u;
  return Raw(mat4x4<f32>(bitcast<vec4<f32>>(lo[at]), bitcast<vec4<f32>>(lo[at + 1u]),
                         bitcast<vec4<f32>>(lo[at + 2u]), bitcast<vec4<f32>>(lo[at + 3u])),
             mat4x4<f32>(bitcast<vec4<f32>>(lo[at + 4u]), bitcast<vec4<f32>>(lo[at + 5u]),
                         bitcast<vec4<f32>>(lo[at + 6u]), bitcast<vec4<f32>>(lo[at + 7u])));
}
