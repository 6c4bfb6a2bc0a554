// Appends rows of K and V to a layer's cache at positions `position`, `position` + 1, …. One thread per row and four
// columns of both.
struct Params {
  rows: u32, width: u32, position: u32, grid_x: u32,
  k_offset: u32, k_stride: u32, v_offset: u32, v_stride: u32,
}

@group(0) @binding(next) var<storage, read> k: array<f32>;  // [rows, k_stride]
@group(0) @binding(next) var<storage, read> v: array<f32>;  // [rows, v_stride]
@group(0) @binding(next) var<storage, read_write> k_cache: array<WORDS>;  // [capacity, width / 4]
@group(0) @binding(next) var<storage, read_write> v_cache: array<WORDS>;
@group(0) @binding(next) var<uniform> p: Params;

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

@compute @workgroup_size(WORKGROUP)
fn main(@builtin(workgroup_id) wg: vec3<u32>, @builtin(local_invocation_index) thread: u32) {
  let id = (wg.y * p.grid_x + wg.x) * WORKGROUP + thread;
  let quads = p.width / 4u;
  if (id >= p.rows * quads) {
    return;
  }
  let row = id / quads;
  let column = id % quads * 4u;
  let from_k = p.k_offset + row * p.k_stride + column;
  let from_v = p.v_offset + row * p.v_stride + column;
  let to = p.position * quads + id;
  k_cache[to] = words(k[from_k], k[from_k + 1u], k[from_k + 2u], k[from_k + 3u]);
  v_cache[to] = words(v[from_v], v[from_v + 1u], v[from_v + 2u], v[from_v + 3u]);
}
