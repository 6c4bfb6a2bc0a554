// Reads `data` once, neighbouring lanes neighbouring vec4s, four loads in flight a thread.
struct Params { vec4s: u32, threads: u32, pad0: u32, pad1: u32 }

@group(0) @binding(next) var<storage, read> data: array<vec4<u32>>;
@group(0) @binding(next) var<storage, read_write> out: array<u32>;
@group(0) @binding(next) var<uniform> p: Params;

@compute @workgroup_size(256)
fn main(@builtin(global_invocation_id) id: vec3<u32>) {
  var folded = vec4<u32>();
  for (var i = id.x; i < p.vec4s; i += 4u * p.threads) {
    let a = data[i];
    let b = data[min(i + p.threads, p.vec4s - 1u)];
    let c = data[min(i + 2u * p.threads, p.vec4s - 1u)];
    let d = data[min(i + 3u * p.threads, p.vec4s - 1u)];
    folded ^= (a ^ b) ^ (c ^ d);
  }
  // Never true for the zeros that the buffer holds, which the compiler cannot know.
  if ((folded.x ^ folded.y ^ folded.z ^ folded.w) == 1u) {
    out[0] = id.x;
  }
}
