// Eight independent chains of dot4I8Packed a thread, `rounds` long.
struct Params { rounds: u32, pad0: u32, pad1: u32, pad2: u32 }

@group(0) @binding(next) var<storage, read_write> out: array<i32>;
@group(0) @binding(next) var<uniform> p: Params;

@compute @workgroup_size(256)
fn main(@builtin(global_invocation_id) id: vec3<u32>) {
#unroll i 8
  var a{i} = i32(id.x + {i}u);
#end
  for (var r = 0u; r < p.rounds; r++) {
#unroll i 8
    a{i} += dot4I8Packed(u32(a{i}), r + {i}u);
#end
  }
  let all = ((a0 ^ a1) ^ (a2 ^ a3)) ^ ((a4 ^ a5) ^ (a6 ^ a7));
  if (all == 0x12345678) {
    out[0] = all;
  }
}
