// Per row of router logits: the top_k experts, the largest logit first, of equals the lower number, and their weights.
// One workgroup a row. An expert's place is the number of experts before it, so nothing is sorted.
struct Params {
  rows: u32, experts: u32, top_k: u32, grid_x: u32,
  in_offset: u32, in_stride: u32, out_offset: u32, out_stride: u32,
}

@group(0) @binding(next) var<storage, read> in: array<f32>;  // [rows, in_stride]
@group(0) @binding(next) var<storage, read_write> out: array<f32>;  // [rows, out_stride]: numbers, then weights
@group(0) @binding(next) var<uniform> p: Params;

var<workgroup> logits: array<f32, MAX_EXPERTS>;
var<workgroup> keys: array<u32, MAX_EXPERTS>;
var<workgroup> chosen: array<f32, MAX_TOP_K>;  // logits, the largest first
#if OVER_ALL
var<workgroup> sums: array<f32, WORKGROUP>;
#endif

// Orders as the float does. Total, so that logits that are not numbers find a place as well.
fn order_key(v: f32) -> u32 {
  let bits = bitcast<u32>(v);
  let zero = (bits & 0x7fffffffu) == 0u;
  return select(select(bits | 0x80000000u, ~bits, bits >= 0x80000000u), 0x80000000u, zero);
}

@compute @workgroup_size(WORKGROUP)
fn main(@builtin(workgroup_id) wg: vec3<u32>, @builtin(local_invocation_index) thread: u32) {
  let row = wg.y * p.grid_x + wg.x;
  if (row >= p.rows) {
    return;
  }
  for (var e = thread; e < p.experts; e += WORKGROUP) {
    let v = in[p.in_offset + row * p.in_stride + e];
    logits[e] = v;
    keys[e] = order_key(v);
  }
  workgroupBarrier();
  let to = p.out_offset + row * p.out_stride;
  for (var e = thread; e < p.experts; e += WORKGROUP) {
    let key = keys[e];
    var before = 0u;
    for (var other = 0u; other < p.experts; other++) {
      before += u32(keys[other] > key || (keys[other] == key && other < e));
    }
    if (before < p.top_k) {
      out[to + before] = f32(e);
      chosen[before] = logits[e];
    }
  }
  workgroupBarrier();
  let largest = chosen[0];
  var sum = 0.0;
#if OVER_ALL
  for (var e = thread; e < p.experts; e += WORKGROUP) {
    sum += exp(logits[e] - largest);
  }
  sums[thread] = sum;
  workgroupBarrier();
  sum = 0.0;
  for (var i = 0u; i < WORKGROUP; i++) {
    sum += sums[i];
  }
#else
  for (var s = 0u; s < p.top_k; s++) {
    sum += exp(chosen[s] - largest);
  }
#endif
  if (thread < p.top_k) {
    out[to + p.top_k + thread] = exp(chosen[thread] - largest) / sum;
  }
}
