// Workgroup memory of a tile of X_TILE x 64: one 32-value group of each of its rows.
#if INT8
var<workgroup> x_tile: array<vec4<u32>, X_TILE * 2>;
var<workgroup> x_scale: array<vec2<f32>, X_TILE>;
var<workgroup> w_tile: array<vec4<u32>, 64 * 2>;
var<workgroup> w_scales: array<vec4<f32>, 64>;  // s, m
#else
// 8 vec4 a row. Column c of row r lies at c ^ (r % 8): the 8 rows that neighbouring threads read then fall into
// different banks.
var<workgroup> x_tile: array<vec4<f32>, X_TILE * 8>;
var<workgroup> w_tile: array<vec4<f32>, 64 * 8>;

fn put_w(row: u32, c: u32, v: vec4<f32>, scale: f32, m: f32) {
  w_tile[row * 8u + (c ^ (row & 7u))] = v * scale + vec4<f32>(m);
}
#endif
