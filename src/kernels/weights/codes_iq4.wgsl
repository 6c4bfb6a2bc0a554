// 4-bit codes of the IQ4 codebook (base/quant_codebooks.h), eight levels below zero and eight above. The four bits of
// a code choose its value step by step, for four bytes of each word at a time.
fn w_choose(a: vec4<u32>, b: vec4<u32>, mask: vec4<u32>) -> vec4<u32> {
  return a ^ ((a ^ b) & mask);
}

fn w_const(a: u32, b: u32, mask: vec4<u32>) -> vec4<u32> {
  return vec4<u32>(a * 0x01010101u) ^ (vec4<u32>((a ^ b) * 0x01010101u) & mask);
}

fn w_bit(codes: vec4<u32>, bit: u32) -> vec4<u32> {
  return ((codes >> vec4<u32>(bit)) & vec4<u32>(0x01010101u)) * vec4<u32>(255u);
}

fn w_decode(codes: vec4<u32>) -> vec4<u32> {
  let b0 = w_bit(codes, 0u);
  let b1 = w_bit(codes, 1u);
  let b2 = w_bit(codes, 2u);
  let q0 = w_choose(w_const(0x81u, 0x98u, b0), w_const(0xadu, 0xbfu, b0), b1);  // -127 -104 -83 -65
  let q1 = w_choose(w_const(0xcfu, 0xddu, b0), w_const(0xeau, 0xf6u, b0), b1);  // -49 -35 -22 -10
  let q2 = w_choose(w_const(0x01u, 0x0du, b0), w_const(0x19u, 0x26u, b0), b1);  // 1 13 25 38
  let q3 = w_choose(w_const(0x35u, 0x45u, b0), w_const(0x59u, 0x71u, b0), b1);  // 53 69 89 113
  return w_choose(w_choose(q0, q1, b2), w_choose(q2, q3, b2), w_bit(codes, 3u));
}

fn w_load(row: u32, g: u32) -> Raw {
  let v = lo[row * (p.lo_words / 4u) + g];
  return Raw(w_decode(v), w_decode(v >> vec4<u32>(4u)));
}
