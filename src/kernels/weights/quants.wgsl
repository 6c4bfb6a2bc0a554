// Common form of the quantised types: 32 int8 in natural order, four a word.
struct Raw {
  a: vec4<u32>,  // values 0..15
  b: vec4<u32>,  // values 16..31
}

fn w_low(w: Raw) -> mat4x4<f32> {
  return mat4x4<f32>(vec4<f32>(unpack4xI8(w.a.x)), vec4<f32>(unpack4xI8(w.a.y)), vec4<f32>(unpack4xI8(w.a.z)),
                     vec4<f32>(unpack4xI8(w.a.w)));
}

fn w_high(w: Raw) -> mat4x4<f32> {
  return mat4x4<f32>(vec4<f32>(unpack4xI8(w.b.x)), vec4<f32>(unpack4xI8(w.b.y)), vec4<f32>(unpack4xI8(w.b.z)),
                     vec4<f32>(unpack4xI8(w.b.w)));
}

// The 16 bits of group g in the scale plane.
fn w_bits16(row: u32, g: u32) -> u32 {
  return (aux[p.scale_start + row * p.scale_words + (g >> 1u)] >> ((g & 1u) * 16u)) & 0xffffu;
}
