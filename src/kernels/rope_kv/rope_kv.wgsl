// What stands between the q, k and v of a layer and its attention: q and k heads are normalised (with NORM) and rotated,
// q in place, k and v go to the cache. A row of x is [q heads | k heads | v heads]; one workgroup a row and head.
struct Params {
  rows: u32, q_heads: u32, kv_heads: u32, pairs: u32,
  x_offset: u32, x_stride: u32, table_row: u32, position: u32,
  q_norm: u32, k_norm: u32, grid_x: u32, pad: u32,
  eps: f32, weight_offset: f32, pad0: f32, pad1: f32,
}

@group(0) @binding(next) var<storage, read> table: array<vec2<f32>>;  // [positions, pairs]: cos, sin
#if NORM
@group(0) @binding(next) var<storage, read> weights: array<f32>;
#endif
@group(0) @binding(next) var<storage, read_write> x: array<f32>;  // [rows, x_stride]
@group(0) @binding(next) var<storage, read_write> k_cache: array<WORDS>;  // [capacity, kv_heads * HEAD_DIM / 4]
@group(0) @binding(next) var<storage, read_write> v_cache: array<WORDS>;
@group(0) @binding(next) var<uniform> p: Params;

#include "kv_write/words.wgsl"

var<workgroup> head: array<f32, HEAD_DIM>;
#if NORM
var<workgroup> partial: array<f32, 64>;
var<workgroup> folded: array<f32, 8>;

fn workgroup_sum(v: f32, thread: u32) -> f32 {
  partial[thread] = v;
  workgroupBarrier();
  if (thread < 8u) {
    var s = 0.0;
    for (var i = 0u; i < 8u; i++) {
      s += partial[thread * 8u + i];
    }
    folded[thread] = s;
  }
  workgroupBarrier();
  return ((folded[0] + folded[1]) + (folded[2] + folded[3])) + ((folded[4] + folded[5]) + (folded[6] + folded[7]));
}
#endif

@compute @workgroup_size(64)
fn main(@builtin(workgroup_id) wg: vec3<u32>, @builtin(local_invocation_index) thread: u32) {
  let heads = p.q_heads + 2u * p.kv_heads;
  let id = wg.y * p.grid_x + wg.x;
  // Beyond the last head a workgroup computes that one again and stores nothing: barriers want all threads.
  let live = id < p.rows * heads;
  let row = min(id / heads, p.rows - 1u);
  let number = id % heads;
  let is_q = number < p.q_heads;
  let is_v = number >= p.q_heads + p.kv_heads;
  let at = p.x_offset + row * p.x_stride + number * HEAD_DIM;
  for (var i = thread; i < HEAD_DIM; i += 64u) {
    head[i] = x[at + i];
  }
#if NORM
  var squares = 0.0;
  for (var i = thread; i < HEAD_DIM; i += 64u) {
    squares += head[i] * head[i];
  }
  let factor = inverseSqrt(workgroup_sum(squares, thread) / f32(HEAD_DIM) + p.eps);
  let weight = select(p.k_norm, p.q_norm, is_q);
  if (!is_v) {
    for (var i = thread; i < HEAD_DIM; i += 64u) {
      head[i] = head[i] * factor * (weights[weight + i] + p.weight_offset);
    }
  }
#endif
  workgroupBarrier();
  if (!is_v) {
    for (var pair = thread; pair < p.pairs; pair += 64u) {
#if INTERLEAVED
      let first = pair * 2u;
      let second = first + 1u;
#else
      let first = pair;
      let second = pair + p.pairs;
#endif
      let turn = table[(p.table_row + row) * p.pairs + pair];
      let a = head[first];
      let b = head[second];
      head[first] = a * turn.x - b * turn.y;
      head[second] = b * turn.x + a * turn.y;
    }
  }
  workgroupBarrier();
  if (!live) {
    return;
  }
  if (is_q) {
    for (var i = thread; i < HEAD_DIM; i += 64u) {
      x[at + i] = head[i];
    }
    return;
  }
  let kv_head = select(number - p.q_heads, number - p.q_heads - p.kv_heads, is_v);
  let to = ((p.position + row) * p.kv_heads + kv_head) * (HEAD_DIM / 4u);
  for (var quad = thread; quad < HEAD_DIM / 4u; quad += 64u) {
    let four = words(head[quad * 4u], head[quad * 4u + 1u], head[quad * 4u + 2u], head[quad * 4u + 3u]);
    if (is_v) {
      v_cache[to + quad] = four;
    } else {
      k_cache[to + quad] = four;
    }
  }
}
