// Four columns as a cache keeps them.
#if F16_CACHE
// f32 to f16 in integers, round to nearest even: pack2x16float may round either way and is undefined beyond f16's
// range, where the cache must show infinity.
fn half_bits(value: f32) -> u32 {
  let bits = bitcast<u32>(value);
  let sign = (bits >> 16u) & 0x8000u;
  let magnitude = bits & 0x7fffffffu;
  if (magnitude > 0x7f800000u) {
    return sign | 0x7e00u;
  }
  if (magnitude >= 0x477ff000u) {
    return sign | 0x7c00u;
  }
  if (magnitude < 0x33000000u) {
    return sign;  // at most half of the smallest subnormal
  }
  if (magnitude < 0x38800000u) {  // subnormal: shift the 24-bit mantissa to a multiple of 2^-24
    let shift = 126u - (magnitude >> 23u);
    let mantissa = (magnitude & 0x7fffffu) | 0x800000u;
    let half = 1u << (shift - 1u);
    return sign | ((mantissa + half - 1u + ((mantissa >> shift) & 1u)) >> shift);
  }
  return sign | ((magnitude - 0x38000000u + 0xfffu + ((magnitude >> 13u) & 1u)) >> 13u);
}

fn words(a: f32, b: f32, c: f32, d: f32) -> vec2<u32> {
  return vec2<u32>(half_bits(a) | (half_bits(b) << 16u), half_bits(c) | (half_bits(d) << 16u));
}
#else
fn words(a: f32, b: f32, c: f32, d: f32) -> vec4<f32> {
  return vec4<f32>(a, b, c, d);
}
#endif
