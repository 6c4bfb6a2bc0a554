// The sum over a workgroup of WORKGROUP = SIDE * SIDE threads, for every thread. All threads must call it, and may call
// it again.
var<workgroup> partial: array<f32, WORKGROUP>;
var<workgroup> folded: array<f32, SIDE>;

fn workgroup_sum(v: f32, thread: u32) -> f32 {
  partial[thread] = v;
  workgroupBarrier();
  if (thread < SIDE) {
    var s = 0.0;
    for (var i = 0u; i < SIDE; i++) {
      s += partial[thread * SIDE + i];
    }
    folded[thread] = s;
  }
  workgroupBarrier();
  var total = 0.0;
  for (var i = 0u; i < SIDE; i++) {
    total += folded[i];
  }
  return total;
}
