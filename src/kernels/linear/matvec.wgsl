// out[c, n] = dot(x[c], W[n]) for X_ROWS rows of x. TEAM neighbouring threads share a dot product, each taking every
// TEAM-th group of 32 values, so that they read neighbouring words; each thread accumulates ROWS rows of W at once to
// use its part of x ROWS times.
#include "linear/linear_io.wgsl"
#include "linear/matvec_team.wgsl"

@compute @workgroup_size(WORKGROUP)
fn main(@builtin(workgroup_id) wg: vec3<u32>, @builtin(local_invocation_index) thread: u32) {
  let lane = thread % TEAM;
  let team = thread / TEAM;
  let first = ((wg.y * p.grid_x + wg.x) * kTeams + team) * ROWS;
  let x_first = 0u;
#unroll r ROWS
  let row{r} = min(first + {r}u, p.w_rows - 1u);
#end
#include "linear/matvec_sums.wgsl"
  for (var i = thread; i < kTeams * kResults; i += WORKGROUP) {
    let r = i % kResults / X_ROWS;
    let w_row = ((wg.y * p.grid_x + wg.x) * kTeams + i / kResults) * ROWS + r;
    if (w_row < p.w_rows) {
      store(i % X_ROWS, w_row, team_sum(i));
    }
  }
}
