// Sorts the uses of experts (use = row * top_k + slot) by expert and cuts them into tiles of at most p.tile uses of one
// expert. One workgroup. groups = [tiles, 4]: expert, first of its uses, how many (0: no tile), 0; then [uses]: the uses
// in the order of their experts.
struct Params {
  uses: u32, top_k: u32, experts: u32, tile: u32,
  tiles: u32, routes_offset: u32, routes_stride: u32, pad: u32,
}

@group(0) @binding(next) var<storage, read> routes: array<f32>;  // [rows, routes_stride]: experts, then weights
@group(0) @binding(next) var<storage, read_write> groups: array<u32>;
@group(0) @binding(next) var<uniform> p: Params;

var<workgroup> counts: array<atomic<u32>, MAX_EXPERTS>;
var<workgroup> ends: array<atomic<u32>, MAX_EXPERTS>;  // of the uses placed so far

fn expert_of(use_id: u32) -> u32 {
  let at = p.routes_offset + use_id / p.top_k * p.routes_stride + use_id % p.top_k;
  return min(u32(routes[at]), p.experts - 1u);
}

@compute @workgroup_size(WORKGROUP)
fn main(@builtin(local_invocation_index) thread: u32) {
  for (var e = thread; e < p.experts; e += WORKGROUP) {
    atomicStore(&counts[e], 0u);
  }
  workgroupBarrier();
  for (var i = thread; i < p.uses; i += WORKGROUP) {
    atomicAdd(&counts[expert_of(i)], 1u);
  }
  workgroupBarrier();
  for (var e = thread; e < p.experts; e += WORKGROUP) {
    var first = 0u;
    var tile = 0u;
    for (var before = 0u; before < e; before++) {
      let count = atomicLoad(&counts[before]);
      first += count;
      tile += (count + p.tile - 1u) / p.tile;
    }
    atomicStore(&ends[e], first);
    let end = first + atomicLoad(&counts[e]);
    for (; first < end; first += p.tile) {
      groups[tile * 4u] = e;
      groups[tile * 4u + 1u] = first;
      groups[tile * 4u + 2u] = min(p.tile, end - first);
      groups[tile * 4u + 3u] = 0u;
      tile++;
    }
    if (e == p.experts - 1u) {
      for (; tile < p.tiles; tile++) {
        groups[tile * 4u + 2u] = 0u;
      }
    }
  }
  workgroupBarrier();
  for (var i = thread; i < p.uses; i += WORKGROUP) {
    // Which of an expert's uses comes first is left to chance: no result depends on it.
    let at = atomicAdd(&ends[expert_of(i)], 1u);
    groups[p.tiles * 4u + at] = i;
  }
}
