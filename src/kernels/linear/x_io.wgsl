// The rows of x: their bindings and how kernels read them. Params has columns, x_offset and x_stride.
#if INT8
@group(0) @binding(next) var<storage, read> xq: array<vec4<u32>>;  // [x_rows, groups, 2]: int8, 32 a group
@group(0) @binding(next) var<storage, read> xs: array<vec2<f32>>;  // [x_rows, groups]: scale, scale * sum
#else
#if X_VEC4
@group(0) @binding(next) var<storage, read> x: array<vec4<f32>>;  // [x_rows, x_stride / 4]
#else
@group(0) @binding(next) var<storage, read> x: array<f32>;  // [x_rows, x_stride]
#endif
#endif

#if INT8
fn sum_int8(v: vec4<u32>) -> i32 {
  let ones = 0x01010101u;
  return (dot4I8Packed(v.x, ones) + dot4I8Packed(v.y, ones)) + (dot4I8Packed(v.z, ones) + dot4I8Packed(v.w, ones));
}
#endif

#if !INT8
// Columns [4 i, 4 i + 4) of a row; zero beyond `columns`.
fn x_vec4(row: u32, i: u32) -> vec4<f32> {
#if X_VEC4
  // Without a branch: 32 of these in one function took SwiftShader minutes to compile.
  let at = (p.x_offset + row * p.x_stride) / 4u;
  return select(vec4<f32>(), x[at + min(i, p.columns / 4u - 1u)], i * 4u < p.columns);
#else
  let at = p.x_offset + row * p.x_stride;
  let last = p.columns - 1u;
  let c = vec4<u32>(i * 4u) + vec4<u32>(0u, 1u, 2u, 3u);
  let v = vec4<f32>(x[at + min(c.x, last)], x[at + min(c.y, last)], x[at + min(c.z, last)], x[at + min(c.w, last)]);
  return select(vec4<f32>(), v, c < vec4<u32>(p.columns));
#endif
}
#endif
