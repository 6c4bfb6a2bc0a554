// out[use, n] = dot(x of the use, W[its expert][n]). One use a workgroup (wg.z), else as linear/matvec.wgsl.
#include "expert_linear/expert_io.wgsl"
#include "linear/matvec_team.wgsl"

@compute @workgroup_size(WORKGROUP)
fn main(@builtin(workgroup_id) wg: vec3<u32>, @builtin(local_invocation_index) thread: u32) {
  let use_id = wg.z;
  let expert = held_expert(u32(routes[p.routes_offset + use_id / p.top_k * p.routes_stride + use_id % p.top_k]));
  if (expert >= p.held) {
    return;
  }
  let lane = thread % TEAM;
  let team = thread / TEAM;
  let first = ((wg.y * p.grid_x + wg.x) * kTeams + team) * ROWS;
  let x_first = use_id / p.x_uses;
#unroll r ROWS
  let row{r} = expert * p.w_rows + min(first + {r}u, p.w_rows - 1u);
#end
#include "linear/matvec_sums.wgsl"
  for (var i = thread; i < kTeams * kResults; i += WORKGROUP) {
    let w_row = ((wg.y * p.grid_x + wg.x) * kTeams + i / kResults) * ROWS + i % kResults;
    if (w_row < p.w_rows) {
      store(use_id, expert, w_row, team_sum(i));
    }
  }
}
