// out[m, n] = dot(x[m], W[n]) in tiles of X_TILE x 64, 64 threads. Per step the workgroup stages one 32-value group of
// every row of its tile; thread (tm, tn) accumulates rows tm, tm + 8, … of x against rows tn, tn + 8, … of W.
#include "linear/linear_io.wgsl"
#include "linear/matmat_tile.wgsl"

// The row of x that row i of a tile is.
fn x_row(x_first: u32, i: u32) -> u32 {
  return min(x_first + i, p.x_rows - 1u);
}

@compute @workgroup_size(64)
fn main(@builtin(workgroup_id) wg: vec3<u32>, @builtin(local_invocation_index) thread: u32) {
  let tm = thread / 8u;
  let tn = thread % 8u;
  let x_first = wg.y * X_TILE;
  let w_first = (wg.z * p.grid_x + wg.x) * 64u;
  let w_row = min(w_first + thread, p.w_rows - 1u);  // the row this thread stages
#include "linear/matmat_sums.wgsl"
#unroll i X_PER
#unroll j 8
  if (x_first + tm + {i}u * 8u < p.x_rows && w_first + tn + {j}u * 8u < p.w_rows) {
    store(x_first + tm + {i}u * 8u, w_first + tn + {j}u * 8u, sum{i}_{j});
  }
#end
#end
}
