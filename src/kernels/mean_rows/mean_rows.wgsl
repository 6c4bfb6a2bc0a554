// out[0] = the mean of all rows. A workgroup takes COLUMNS neighbouring columns; its other threads share the rows.
struct Params {
  rows: u32, width: u32, in_offset: u32, in_stride: u32,
  out_offset: u32, grid_x: u32, pad0: u32, pad1: u32,
}

@group(0) @binding(next) var<storage, read> in: array<f32>;  // [rows, in_stride]
@group(0) @binding(next) var<storage, read_write> out: array<f32>;  // [width]
@group(0) @binding(next) var<uniform> p: Params;

const kLanes: u32 = WORKGROUP / COLUMNS;
var<workgroup> partial: array<f32, WORKGROUP>;

@compute @workgroup_size(WORKGROUP)
fn main(@builtin(workgroup_id) wg: vec3<u32>, @builtin(local_invocation_index) thread: u32) {
  let column = (wg.y * p.grid_x + wg.x) * COLUMNS + thread % COLUMNS;
  let at = p.in_offset + min(column, p.width - 1u);
  var sum = 0.0;
  for (var row = thread / COLUMNS; row < p.rows; row += kLanes) {
    sum += in[at + row * p.in_stride];
  }
  partial[thread] = sum;
  workgroupBarrier();
  if (thread < COLUMNS && column < p.width) {
    var total = 0.0;
    for (var lane = 0u; lane < kLanes; lane++) {
      total += partial[lane * COLUMNS + thread];
    }
    out[p.out_offset + column] = total / f32(p.rows);
  }
}
