// Common form of the float types: 32 f32, scale 1.
struct Raw {
  a: mat4x4<f32>,  // values 0..15
  b: mat4x4<f32>,  // values 16..31
}

fn w_low(w: Raw) -> mat4x4<f32> {
  return w.a;
}

fn w_high(w: Raw) -> mat4x4<f32> {
  return w.b;
}

fn w_scale(row: u32, g: u32) -> Scale {
  return Scale(vec2<f32>(1.0, 1.0), vec2<f32>());
}
