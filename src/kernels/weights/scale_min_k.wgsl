// 6-bit scale and min a group, times f16 d and dmin per 256 values.
fn w_scale(row: u32, g: u32) -> Scale {
  let d = unpack2x16float(aux[p.super_start + row * p.super_words + (g >> 3u)]);
  let bits = w_bits16(row, g);
  let s = d.x * f32(bits & 0xffu);
  let m = -d.y * f32(bits >> 8u);
  return Scale(vec2<f32>(s, s), vec2<f32>(m, m));
}
