// Packed weights (weights/packed.h): `lo` holds the quants, `aux` the planes behind them. Value i of a 32-value
// group is s * q_i + m, q an int8 in `Raw`; s.x and m.x belong to values 0..15, s.y and m.y to 16..31.
struct Scale {
  s: vec2<f32>,
  m: vec2<f32>,
}

@group(0) @binding(next) var<storage, read> lo: array<vec4<u32>>;  // [rows, lo_words / 4]
#if AUX
@group(0) @binding(next) var<storage, read> aux: array<u32>;  // planes hi, scale, super
#endif
