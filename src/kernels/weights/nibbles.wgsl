// 4 bits a value, unsigned: low nibbles are values 0..15, high nibbles 16..31.
fn w_load(row: u32, g: u32) -> Raw {
  let v = lo[row * (p.lo_words / 4u) + g];
  return Raw(v & vec4<u32>(0x0f0f0f0fu), (v >> vec4<u32>(4u)) & vec4<u32>(0x0f0f0f0fu));
}
