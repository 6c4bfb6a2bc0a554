// 2 bits a value, two groups in a vec4: value 4 w + b of a half group in bits 2 w, 2 w + 1 of byte b of that half's
// word. Returns the words of both halves.
fn w_pairs(row: u32, g: u32) -> vec2<u32> {
  let v = lo[row * (p.lo_words / 4u) + (g >> 1u)];
  return select(v.xy, v.zw, (g & 1u) == 1u);
}
