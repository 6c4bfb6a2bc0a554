// The 32 values of group `id` as int8: s = max|x| / 127, q = round(x / s). What includes this binds `quants` (two vec4s a
// group) and `scales` (s, s * sum of q).
fn quantize_group(id: u32, x0: vec4<f32>, x1: vec4<f32>, x2: vec4<f32>, x3: vec4<f32>, x4: vec4<f32>, x5: vec4<f32>,
    x6: vec4<f32>, x7: vec4<f32>) {
  let most = max(max(max(abs(x0), abs(x1)), max(abs(x2), abs(x3))), max(max(abs(x4), abs(x5)), max(abs(x6), abs(x7))));
  let peak = max(max(most.x, most.y), max(most.z, most.w));
  // Below 1e-30 the inverse would overflow; such a group counts as zero.
  let inverse = select(0.0, 127.0 / peak, peak > 1e-30);
  var sum = vec4<i32>();
#unroll i 8
  let q{i} = vec4<i32>(round(x{i} * inverse));
  sum += q{i};
#end
  quants[id * 2u] = vec4<u32>(pack4xI8(q0), pack4xI8(q1), pack4xI8(q2), pack4xI8(q3));
  quants[id * 2u + 1u] = vec4<u32>(pack4xI8(q4), pack4xI8(q5), pack4xI8(q6), pack4xI8(q7));
  let s = peak / 127.0;
  scales[id] = vec2<f32>(s, s * f32(sum.x + sum.y + sum.z + sum.w));
}
