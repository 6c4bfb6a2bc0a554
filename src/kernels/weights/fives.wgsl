// 5 bits a value, unsigned: nibbles as in the 4-bit types; bit w of byte b of the hi word belongs to value 4 w + b.
fn w_load(row: u32, g: u32) -> Raw {
  let v = lo[row * (p.lo_words / 4u) + g];
  let h = aux[row * p.hi_words + g];
  let ha = (vec4<u32>(h, h >> 1u, h >> 2u, h >> 3u) & vec4<u32>(0x01010101u)) << vec4<u32>(4u);
  let hb = (vec4<u32>(h, h >> 1u, h >> 2u, h >> 3u) & vec4<u32>(0x10101010u));
  return Raw((v & vec4<u32>(0x0f0f0f0fu)) | ha, ((v >> vec4<u32>(4u)) & vec4<u32>(0x0f0f0f0fu)) | hb);
}
