// out[use, n] = dot(x of the use, W[its expert][n]) in tiles of X_TILE uses of one expert x 64 rows of W, 64 threads;
// else as linear/matmat.wgsl.
#include "expert_linear/expert_io.wgsl"
#include "linear/matmat_tile.wgsl"

var<workgroup> uses: array<u32, X_TILE>;  // of this tile; the last one stands in for those beyond its end

// The row of x that row i of the tile is.
fn x_row(tile: u32, i: u32) -> u32 {
  return uses[i] / p.x_uses;
}

@compute @workgroup_size(64)
fn main(@builtin(workgroup_id) wg: vec3<u32>, @builtin(local_invocation_index) thread: u32) {
  let count = groups[wg.y * 4u + 2u];
  if (count == 0u) {
    return;
  }
  let expert = held_expert(groups[wg.y * 4u]);
  if (expert >= p.held) {
    return;
  }
  if (thread < X_TILE) {
    uses[thread] = groups[p.tiles * 4u + groups[wg.y * 4u + 1u] + min(thread, count - 1u)];
  }
  workgroupBarrier();
  let tm = thread / 8u;
  let tn = thread % 8u;
  let x_first = wg.y;
  let w_first = (wg.z * p.grid_x + wg.x) * 64u;
  let w_row = expert * p.w_rows + min(w_first + thread, p.w_rows - 1u);  // the row this thread stages
#include "linear/matmat_sums.wgsl"
#unroll i X_PER
#unroll j 8
  if (tm + {i}u * 8u < count && w_first + tn + {j}u * 8u < p.w_rows) {
    store(uses[tm + {i}u * 8u], expert, w_first + tn + {j}u * 8u, sum{i}_{j});
  }
#end
#end
}
