#include "gpu/shader_bindings.h"

#include <doctest/doctest.h>

using doppler::gpu::BindingKind;
using doppler::gpu::shader_bindings;

TEST_CASE("bindings are read in their order, whatever the spelling") {
  const auto kinds = shader_bindings(
      "// @group(0) @binding(9) var<uniform> not_this: f32;\n"
      "/* @group(3) /* nested */ @binding(1) */ struct P { @size(16) a: u32 }\n"
      "@binding(1) @group(0) var<storage, read_write> y: array<f32>;\n"
      "@group(0)@binding(0u) var < storage , read > x: array<f32>;\n"
      "@group( 0 ) @binding( 2 )\n var<uniform> p: P;\n"
      "@compute @workgroup_size(64) fn main(@builtin(global_invocation_id) g: vec3u) {}");
  REQUIRE(kinds);
  CHECK(*kinds ==
        std::vector{BindingKind::kReadStorage, BindingKind::kReadWriteStorage, BindingKind::kUniform});
}

TEST_CASE("bindings that cannot be laid out are errors") {
  CHECK(!shader_bindings("@group(1) @binding(0) var<storage> x: array<f32>;"));
  CHECK(!shader_bindings("@group(0) @binding(1) var<storage> x: array<f32>;"));
  CHECK(!shader_bindings("@group(0) @binding(0) var t: texture_2d<f32>;"));
  CHECK(!shader_bindings(
      "@group(0) @binding(0) var<storage> x: u32; @group(0) @binding(0) var<storage> y: u32;"));
  CHECK(!shader_bindings("@group(0) @binding(4000000000) var<storage> x: u32;"));
  CHECK(shader_bindings("/* never closed")->empty());
}
