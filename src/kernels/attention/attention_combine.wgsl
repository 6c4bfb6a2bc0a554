// Joins the splits of attention: out = sum_s e^(m_s - m) a_s / sum_s e^(m_s - m) l_s. One workgroup per row and head.
struct Params {
  rows: u32, heads: u32, kv_heads: u32, head_dim: u32,
  position: u32, window: u32, q_offset: u32, q_stride: u32,
  out_offset: u32, out_stride: u32, splits: u32, split_keys: u32,
  scale: f32, softcap: f32, sink_base: u32, pad: u32,
}

@group(0) @binding(next) var<storage, read> parts: array<f32>;  // [rows, heads, splits, head_dim + 2]: a, m, l
@group(0) @binding(next) var<storage, read_write> out: array<f32>;  // [rows, out_stride]
@group(0) @binding(next) var<uniform> p: Params;

@compute @workgroup_size(64)
fn main(@builtin(workgroup_id) wg: vec3<u32>, @builtin(local_invocation_index) thread: u32) {
  let stride = p.head_dim + 2u;
  let start = (wg.y * p.heads + wg.x) * p.splits * stride;
  var m = -3.0e38;
  for (var s = 0u; s < p.splits; s++) {
    m = max(m, parts[start + s * stride + p.head_dim]);
  }
  for (var c = thread; c < p.head_dim; c += 64u) {
    var sum = 0.0;
    var total = 0.0;
    for (var s = 0u; s < p.splits; s++) {
      let at = start + s * stride;
      let factor = exp(parts[at + p.head_dim] - m);
      sum += factor * parts[at + c];
      total += factor * parts[at + p.head_dim + 1u];
    }
    out[p.out_offset + wg.y * p.out_stride + wg.x * p.head_dim + c] = sum / total;
  }
}
