// Teams of a workgroup of WORKGROUP threads: TEAM threads share a dot product, ROWS * X_ROWS of them at once.
const kTeams: u32 = WORKGROUP / TEAM;
#if SUBGROUPS
const kPartials: u32 = TEAM / 4;
#else
const kPartials: u32 = TEAM;
#endif
const kResults: u32 = ROWS * X_ROWS;
var<workgroup> partial: array<f32, kTeams * kResults * kPartials>;

#if SUBGROUPS
// Sum over four neighbouring lanes: right for every subgroup size from 4 up.
fn quad_sum(v: f32) -> f32 {
  let pair = v + subgroupShuffleXor(v, 1u);
  return pair + subgroupShuffleXor(pair, 2u);
}
#endif

// Result i of the workgroup, once all its teams have left their parts.
fn team_sum(i: u32) -> f32 {
  var total = 0.0;
  for (var k = 0u; k < kPartials; k++) {
    total += partial[i * kPartials + k];
  }
  return total;
}
