// out = softmax(scale * q k^T) v, online softmax over tiles of 64 keys. A workgroup takes QUERIES (row, head) pairs of one
// KV head and reads each key and value once for all of them:
//   scores   thread t owns key t of the tile: dot products with every query (q in workgroup memory)
//   softmax  running maximum per query over the tile; each thread keeps its own part of the sum
//   values   thread t owns COLUMNS times four columns of the output, 256 apart; where head_dim < 256, `slices` threads
//            share a column
// With SINKS each head has a score without a key: it joins the softmax's sum and brings no value. Without CAUSAL every
// row sees every position. With SPLIT, part wg.z of the keys leaves its unnormalised sums, maximum and weight sum for
// attention_combine.
struct Params {
  rows: u32, heads: u32, kv_heads: u32, head_dim: u32,
  position: u32, window: u32, q_offset: u32, q_stride: u32,
  out_offset: u32, out_stride: u32, splits: u32, split_keys: u32,
  scale: f32, softcap: f32, sink_base: u32, pad: u32,
}

#if Q_VEC4
@group(0) @binding(next) var<storage, read> q: array<vec4<f32>>;  // [rows, q_stride / 4]
#else
@group(0) @binding(next) var<storage, read> q: array<f32>;  // [rows, q_stride]
#endif
@group(0) @binding(next) var<storage, read> k_cache: array<vec4<WORD>>;  // [capacity, kv_heads * head_dim], 16 bytes each
@group(0) @binding(next) var<storage, read> v_cache: array<VALUES>;      // the same, four columns each
#if SINKS
@group(0) @binding(next) var<storage, read> sinks: array<f32>;  // [heads], from sink_base
#endif
@group(0) @binding(next) var<storage, read_write> out: array<f32>;  // [rows, out_stride]; SPLIT: see attention_combine
@group(0) @binding(next) var<uniform> p: Params;

const kTile: u32 = 64u;
const kLowest: f32 = -3.0e38;  // finite, so that differences of two of them are 0 and not NaN

// q [query, head_dim / 4]; at the end, sums [query, COLUMNS, thread]
var<workgroup> wide: array<vec4<f32>, QUERIES * COLUMNS * 64>;
var<workgroup> weights: array<f32, QUERIES * 64>;  // scores, then weights [query, key]
var<workgroup> partial: array<f32, QUERIES * 8>;

fn q_vec4(row: u32, head: u32, c: u32) -> vec4<f32> {
  let at = p.q_offset + row * p.q_stride + head * p.head_dim + c * 4u;
#if Q_VEC4
  return q[at / 4u];
#else
  return vec4<f32>(q[at], q[at + 1u], q[at + 2u], q[at + 3u]);
#endif
}

fn value(at: u32) -> vec4<f32> {
#if F16_CACHE
  let w = v_cache[at];
  return vec4<f32>(unpack2x16float(w.x), unpack2x16float(w.y));
#else
  return v_cache[at];
#endif
}

// The last position that pair i of a KV head sees.
fn last_seen(i: u32, group_heads: u32) -> u32 {
#if CAUSAL
  return p.position + i / group_heads;
#else
  return p.position + p.rows - 1u;
#endif
}

@compute @workgroup_size(64)
fn main(@builtin(workgroup_id) wg: vec3<u32>, @builtin(local_invocation_index) thread: u32) {
  let group_heads = p.heads / p.kv_heads;
  let pairs = p.rows * group_heads;  // of this KV head; pair i is row i / group_heads
  let first = wg.x * QUERIES;
  let kv_head = wg.y;
  let quads = p.head_dim / 4u;
  let width = p.kv_heads * quads;  // of a cache row, in vec4

  for (var i = thread; i < QUERIES * quads; i += 64u) {
    let pair = min(first + i / quads, pairs - 1u);
    let head = kv_head * group_heads + pair % group_heads;
    wide[i] = q_vec4(pair / group_heads, head, i % quads) * p.scale;
  }
#unroll n QUERIES
  let pair{n} = min(first + {n}u, pairs - 1u);
  let seen{n} = last_seen(pair{n}, group_heads);
#if SINKS
#if SPLIT
  let has_sink{n} = wg.z == 0u;
#else
  let has_sink{n} = true;
#endif
  var most{n} = select(kLowest, sinks[p.sink_base + kv_head * group_heads + pair{n} % group_heads], has_sink{n});
  var total{n} = select(0.0, 1.0, has_sink{n} && thread == 0u);  // of this thread's keys; the sink's is the first's
#else
  var most{n} = kLowest;
  var total{n} = 0.0;  // of this thread's keys
#endif
#unroll j COLUMNS
  var sum{n}_{j} = vec4<f32>();
#end
#end
  // Positions any query of this workgroup may see, in whole tiles, within this split.
  let newest = last_seen(min(first + QUERIES - 1u, pairs - 1u), group_heads);
  var begin = 0u;
  if (p.window != 0u && seen0 + 1u > p.window) {
    begin = (seen0 + 1u - p.window) / kTile;
  }
  var end = newest / kTile + 1u;
#if SPLIT
  begin = max(begin, wg.z * (p.split_keys / kTile));
  end = min(end, (wg.z + 1u) * (p.split_keys / kTile));
#endif
  // Values: thread = slice * quads + column; one slice where there are 64 columns or more.
  let slices = max(64u / quads, 1u);
  let slice = thread / quads;
#unroll j COLUMNS
  let column{j} = kv_head * quads + min(thread % quads + {j}u * 64u, quads - 1u);
#end
  workgroupBarrier();

  for (var tile = begin; tile < end; tile++) {
    let key = tile * kTile + thread;
    let key_row = min(key, newest);
#unroll n QUERIES
    var dot{n} = 0.0;
#end
#if F16_CACHE
    let at = (key_row * width + kv_head * quads) / 2u;
    for (var c = 0u; c < quads / 2u; c++) {
      let w = k_cache[at + c];
      let k0 = vec4<f32>(unpack2x16float(w.x), unpack2x16float(w.y));
      let k1 = vec4<f32>(unpack2x16float(w.z), unpack2x16float(w.w));
#unroll n QUERIES
      dot{n} += dot(k0, wide[{n}u * quads + c * 2u]) + dot(k1, wide[{n}u * quads + c * 2u + 1u]);
#end
    }
#else
    let at = key_row * width + kv_head * quads;
    for (var c = 0u; c < quads; c++) {
      let k0 = k_cache[at + c];
#unroll n QUERIES
      dot{n} += dot(k0, wide[{n}u * quads + c]);
#end
    }
#endif
#unroll n QUERIES
    let seen_by{n} = key <= seen{n} && (p.window == 0u || seen{n} - key < p.window);
#if SOFTCAP
    let capped{n} = p.softcap * tanh(clamp(dot{n} / p.softcap, -10.0, 10.0));
    let score{n} = select(kLowest, capped{n}, seen_by{n});
#else
    let score{n} = select(kLowest, dot{n}, seen_by{n});
#endif
    weights[{n}u * 64u + thread] = score{n};
#end
    workgroupBarrier();
    if (thread < QUERIES * 8u) {  // eight threads a query, eight scores each
      var m = kLowest;
      for (var i = 0u; i < 8u; i++) {
        m = max(m, weights[thread * 8u + i]);
      }
      partial[thread] = m;
    }
    workgroupBarrier();
#unroll n QUERIES
    {
      var m = most{n};
      for (var i = 0u; i < 8u; i++) {
        m = max(m, partial[{n}u * 8u + i]);
      }
      let correction = exp(most{n} - m);
      most{n} = m;
      let weight = select(0.0, exp(score{n} - m), seen_by{n});
      total{n} = total{n} * correction + weight;
#unroll j COLUMNS
      sum{n}_{j} *= correction;
#end
      weights[{n}u * 64u + thread] = weight;
    }
#end
    workgroupBarrier();
    if (slice < slices) {
      let keys = min(kTile, newest + 1u - tile * kTile);
      for (var i = slice; i < keys; i += slices) {
#unroll j COLUMNS
        let v{j} = value((tile * kTile + i) * width + column{j});
#unroll n QUERIES
        sum{n}_{j} += weights[{n}u * 64u + i] * v{j};
#end
#end
      }
    }
    workgroupBarrier();
  }

#unroll n QUERIES
  weights[{n}u * 64u + thread] = total{n};
#unroll j COLUMNS
  wide[({n}u * COLUMNS + {j}u) * 64u + thread] = sum{n}_{j};
#end
#end
  workgroupBarrier();
  if (thread < QUERIES * 8u) {
    var t = 0.0;
    for (var i = 0u; i < 8u; i++) {
      t += weights[thread * 8u + i];
    }
    partial[thread] = t;
  }
  workgroupBarrier();
#unroll n QUERIES
  if (first + {n}u < pairs) {
    var t = 0.0;
    for (var i = 0u; i < 8u; i++) {
      t += partial[{n}u * 8u + i];
    }
    let row = (first + {n}u) / group_heads;
    let head = kv_head * group_heads + (first + {n}u) % group_heads;
#if SPLIT
    let at = ((row * p.heads + head) * p.splits + wg.z) * (p.head_dim + 2u);
    if (thread == 0u) {
      out[at + p.head_dim] = most{n};
      out[at + p.head_dim + 1u] = t;
    }
    t = 1.0;  // attention_combine divides
#else
    let at = p.out_offset + row * p.out_stride + head * p.head_dim;
#endif
    for (var j = 0u; j < COLUMNS; j++) {
      let c = thread + j * 64u;
      if (c < quads) {
        var s = vec4<f32>();
        for (var i = 0u; i < slices; i++) {
          s += wide[({n}u * COLUMNS + j) * 64u + i * quads + thread];
        }
        s = s / t;
        out[at + c * 4u] = s.x;
        out[at + c * 4u + 1u] = s.y;
        out[at + c * 4u + 2u] = s.z;
        out[at + c * 4u + 3u] = s.w;
      }
    }
  }
#end
}
