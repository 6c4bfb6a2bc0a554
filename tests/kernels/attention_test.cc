#include "kernels/attention/attention.h"

#include "base/half.h"
#include "kernels/attention/reference.h"
#include "kernels/support.h"

namespace doppler::kernels {
namespace {

struct Case {
  uint32_t rows = 1, heads = 4, kv_heads = 2, head_dim = 64, position = 0, window = 0;
  float softcap = 0;
  KvElement element = KvElement::kF32;
  float v_scale = 1.0f;
  uint32_t splits = 1, query_tile = 0;  // query_tile 0: as planned
  bool causal = true;
  float sink = 0;  // their size; 0: none
};

void check(gpu::Device& device, const Case& c) {
  CAPTURE(c.rows);
  CAPTURE(c.heads);
  CAPTURE(c.kv_heads);
  CAPTURE(c.head_dim);
  CAPTURE(c.position);
  CAPTURE(c.window);
  CAPTURE(c.softcap);
  CAPTURE(c.splits);
  CAPTURE(c.query_tile);
  CAPTURE(static_cast<int>(c.element));
  CAPTURE(c.causal);
  CAPTURE(c.sink);
  const uint32_t length = c.position + c.rows, kv_width = c.kv_heads * c.head_dim,
                 width = c.heads * c.head_dim;
  const std::vector<float> q = random_floats(1, size_t{c.rows} * width, 2.0f);
  std::vector<float> k = random_floats(2, size_t{length} * kv_width),
                     v = random_floats(3, size_t{length} * kv_width, c.v_scale);
  const gpu::Buffer q_buffer = upload(device, q), k_in = upload(device, k), v_in = upload(device, v);
  const uint32_t capacity = length + 5;
  const uint64_t bytes = kv_bytes(capacity, kv_width, c.element);
  const gpu::Buffer k_cache = must(device.create_buffer(bytes, "k")),
                    v_cache = must(device.create_buffer(bytes, "v"));
  const KvBuffers cache{&k_cache, &v_cache, kv_width, capacity, c.element};
  // Old positions in one write, the rows' own in a second.
  if (c.position > 0) {
    KvWriteArgs write{matrix(k_in, c.position, kv_width), matrix(v_in, c.position, kv_width), cache, 0};
    must(run_kv_write(device, write));
  }
  KvWriteArgs write{matrix(k_in, c.rows, kv_width), matrix(v_in, c.rows, kv_width), cache, c.position};
  write.k.offset = write.v.offset = uint64_t{c.position} * kv_width;
  must(run_kv_write(device, write));
  if (c.element == KvElement::kF16) {
    for (float& x : k) x = f16_to_f32(f32_to_f16(x));
    for (float& x : v) x = f16_to_f32(f32_to_f16(x));
  }

  const gpu::Buffer out = filled(device, size_t{c.rows} * (width + 6), 77.0f);
  AttentionArgs args;
  args.q = matrix(q_buffer, c.rows, width);
  args.cache = cache;
  args.out = columns(matrix(out, c.rows, width + 6), 3, width);
  args.heads = c.heads;
  args.kv_heads = c.kv_heads;
  args.head_dim = c.head_dim;
  args.position = c.position;
  args.window = c.window;
  args.scale = 0.25f;
  args.softcap = c.softcap;
  args.causal = c.causal;
  std::vector<float> sinks = random_floats(4, c.heads + 3, std::max(c.sink, 1.0f));
  const gpu::Buffer sink_buffer = upload(device, sinks);
  sinks.erase(sinks.begin(), sinks.begin() + 3);
  if (c.sink > 0) {
    args.sinks = &sink_buffer;
    args.sink_base = 3;
  } else {
    sinks.clear();
  }
  const AttentionShape shape{c.rows, c.heads, c.kv_heads, c.head_dim, c.position, c.window};
  AttentionPlan plan = plan_attention(shape, false, device.caps());
  if (c.query_tile != 0) {
    plan.query_tile = c.query_tile;
    plan.grid[0] = (c.rows * (c.heads / c.kv_heads) + c.query_tile - 1) / c.query_tile;
  }
  gpu::Buffer scratch;
  if (c.splits > 1) {
    plan.splits = c.splits;
    plan.split_keys = (length + c.splits * 64 - 1) / (c.splits * 64) * 64;
    plan.grid[2] = c.splits;
    plan.scratch_bytes = uint64_t{c.rows} * c.heads * c.splits * (c.head_dim + 2) * 4;
    scratch = must(device.create_buffer(plan.scratch_bytes, "scratch"));
    args.scratch = &scratch;
  }
  args.plan = plan;
  must(run_attention(device, args));

  const std::vector<float> all = download(device, out);
  std::vector<float> got;
  size_t touched = 0;
  for (size_t i = 0; i < all.size(); ++i) {
    if (i % (width + 6) < 3 || i % (width + 6) >= 3 + width)
      touched += all[i] != 77.0f;
    else
      got.push_back(all[i]);
  }
  CHECK(touched == 0);
  const AttentionReference reference{c.rows,   c.heads, c.kv_heads, c.head_dim, c.position,
                                     c.window, 0.25,    c.softcap,  c.causal,   sinks};
  CHECK(nmse(got, attention_reference(reference, q, k, v)) < 1e-10);
}

TEST_CASE("attention: cache lengths around the key tile, both element types") {
  gpu::Device& device = gpu::test_device();
  for (const KvElement element : {KvElement::kF32, KvElement::kF16})
    for (const uint32_t position : {0u, 1u, 32u, 62u, 63u, 64u, 65u, 127u, 128u, 200u})
      check(device, {.position = position, .element = element});
}

TEST_CASE("attention: head sizes") {
  gpu::Device& device = gpu::test_device();
  for (const KvElement element : {KvElement::kF32, KvElement::kF16})
    for (const uint32_t head_dim : {8u, 16u, 24u, 40u, 64u, 72u, 80u, 96u, 112u, 128u, 160u, 256u})
      check(device, {.rows = 2, .head_dim = head_dim, .position = 70, .element = element});
}

TEST_CASE("attention: heads of several columns a thread") {
  gpu::Device& device = gpu::test_device();
  for (const KvElement element : {KvElement::kF32, KvElement::kF16})
    for (const uint32_t head_dim : {264u, 504u, 512u, 520u, 768u, 1024u})
      check(device, {.rows = 3, .head_dim = head_dim, .position = 70, .element = element});
  check(device,
        {.rows = 33, .heads = 6, .kv_heads = 2, .head_dim = 320, .position = 90, .window = 65, .sink = 1.0f});
  check(device, {.rows = 2, .heads = 4, .kv_heads = 1, .head_dim = 512, .position = 290, .splits = 3});
}

TEST_CASE("attention: many rows, windows, grouped heads") {
  gpu::Device& device = gpu::test_device();
  for (const uint32_t rows : {1u, 2u, 7u, 33u, 70u})
    for (const uint32_t window : {0u, 1u, 5u, 64u, 65u})
      check(device,
            {.rows = rows, .heads = 3, .kv_heads = 1, .head_dim = 16, .position = 60, .window = window});
  check(device, {.rows = 5, .heads = 4, .kv_heads = 4, .head_dim = 32, .position = 300, .window = 100});
  check(device, {.rows = 5, .heads = 16, .kv_heads = 2, .head_dim = 32, .position = 10});
}

TEST_CASE("attention: query tiles and splits give the same") {
  gpu::Device& device = gpu::test_device();
  for (const KvElement element : {KvElement::kF32, KvElement::kF16})
    for (const uint32_t query_tile : {1u, 2u, 4u, 8u})
      check(device, {.rows = 5,
                     .heads = 6,
                     .kv_heads = 2,
                     .position = 90,
                     .window = 70,
                     .element = element,
                     .query_tile = query_tile});
  for (const uint32_t splits : {2u, 3u, 5u})
    for (const uint32_t window : {0u, 100u})
      check(device,
            {.rows = 2, .heads = 4, .kv_heads = 1, .position = 290, .window = window, .splits = splits});
}

TEST_CASE("attention: soft cap, and values beyond f16 in an f32 cache") {
  gpu::Device& device = gpu::test_device();
  check(device, {.rows = 3, .position = 40, .softcap = 2.0f});
  check(device, {.rows = 3, .position = 40, .v_scale = 1e6f});
}

TEST_CASE("attention: sinks, of any size, with windows, soft caps and splits") {
  gpu::Device& device = gpu::test_device();
  for (const float sink : {1.0f, 1e3f})  // beside the scores, and far above or below them
    for (const uint32_t rows : {1u, 5u, 33u})
      for (const uint32_t window : {0u, 1u, 65u}) {
        check(device, {.rows = rows,
                       .heads = 6,
                       .kv_heads = 2,
                       .head_dim = 24,
                       .position = 90,
                       .window = window,
                       .sink = sink});
        check(device, {.rows = rows,
                       .head_dim = 64,
                       .position = 63,
                       .window = window,
                       .softcap = 2.0f,
                       .element = KvElement::kF16,
                       .sink = sink});
      }
  for (const uint32_t query_tile : {1u, 2u, 4u, 8u})
    check(device,
          {.rows = 5, .heads = 6, .kv_heads = 2, .position = 90, .query_tile = query_tile, .sink = 1.0f});
  for (const uint32_t splits : {2u, 3u, 5u})
    for (const uint32_t window : {0u, 100u})
      for (const float sink : {1.0f, 1e3f})
        check(device, {.rows = 2,
                       .heads = 4,
                       .kv_heads = 1,
                       .position = 290,
                       .window = window,
                       .splits = splits,
                       .sink = sink});
}

TEST_CASE("attention: every row sees every row") {
  gpu::Device& device = gpu::test_device();
  for (const uint32_t rows : {1u, 2u, 7u, 63u, 64u, 65u, 130u})
    for (const KvElement element : {KvElement::kF32, KvElement::kF16})
      check(device,
            {.rows = rows, .heads = 6, .kv_heads = 6, .head_dim = 32, .element = element, .causal = false});
  check(device, {.rows = 20,
                 .heads = 4,
                 .kv_heads = 2,
                 .head_dim = 40,
                 .position = 70,
                 .softcap = 2.0f,
                 .causal = false,
                 .sink = 1.0f});
  for (const uint32_t query_tile : {1u, 2u, 4u, 8u})
    check(device,
          {.rows = 5, .heads = 6, .kv_heads = 2, .position = 90, .query_tile = query_tile, .causal = false});
  check(device, {.rows = 3, .heads = 4, .kv_heads = 1, .position = 290, .splits = 3, .causal = false});
}

TEST_CASE("kv_write: rounding to nearest even, subnormals, and infinity beyond f16") {
  gpu::Device& device = gpu::test_device();
  std::vector<float> x{0.0f,  -0.0f,   1.0f,    65504.0f,       65519.0f,   65520.0f, 1e5f,    -1e9f,
                       6e-8f, 2.9e-8f, 3.1e-8f, 1.00048828125f, 1.0014648f, 6.1e-5f,  6.0e-5f, HUGE_VALF};
  for (const float v : random_floats(4, 240))
    x.push_back(std::ldexp(v, static_cast<int>(x.size() % 40) - 30));
  const uint32_t width = 64, rows = 4;
  REQUIRE(x.size() == width * rows);
  const gpu::Buffer in = upload(device, x);
  const uint64_t bytes = kv_bytes(6, width, KvElement::kF16);
  const gpu::Buffer k = must(device.create_buffer(bytes, "k")), v = must(device.create_buffer(bytes, "v"));
  must(run_kv_write(
      device, {matrix(in, rows, width), matrix(in, rows, width), {&k, &v, width, 6, KvElement::kF16}, 1}));
  std::vector<uint16_t> got(bytes / 2);
  must(device.read(k, 0, std::as_writable_bytes(std::span(got))));
  size_t wrong = 0;
  for (size_t i = 0; i < got.size(); ++i) {
    const bool inside = i >= width && i < width * (rows + 1);
    wrong += got[i] != (inside ? f32_to_f16(x[i - width]) : 0);
  }
  CHECK(wrong == 0);
  std::vector<uint16_t> second(bytes / 2);
  must(device.read(v, 0, std::as_writable_bytes(std::span(second))));
  CHECK(got == second);
}

TEST_CASE("attention and kv_write: what does not fit is refused") {
  gpu::Device& device = gpu::test_device();
  const gpu::Buffer x = filled(device, 1024), k = filled(device, 1024), v = filled(device, 1024),
                    out = filled(device, 1024);
  const KvBuffers cache{&k, &v, 16, 64, KvElement::kF32};
  CHECK(run_kv_write(device, {matrix(x, 2, 16), matrix(x, 2, 16), cache, 62}).has_value());
  CHECK(run_kv_write(device, {matrix(x, 2, 16), matrix(x, 2, 16), cache, 63}).error().code ==
        ErrorCode::kBadInput);
  AttentionArgs args;
  args.q = matrix(x, 1, 32);
  args.out = matrix(out, 1, 32);
  args.cache = cache;
  args.heads = 2;
  args.kv_heads = 1;
  args.head_dim = 16;
  CHECK(run_attention(device, args).has_value());
  args.position = 64;
  CHECK(run_attention(device, args).error().code == ErrorCode::kBadInput);
  args.position = 0;
  args.head_dim = 12;
  CHECK(run_attention(device, args).error().code == ErrorCode::kUnsupported);
  args.head_dim = 1032;
  CHECK(run_attention(device, args).error().code == ErrorCode::kUnsupported);
  args.head_dim = 16;
  args.sinks = &x;
  args.sink_base = 1023;
  CHECK(run_attention(device, args).error().code == ErrorCode::kBadInput);
  args.sink_base = 1022;
  CHECK(run_attention(device, args).has_value());
  args.causal = false;
  args.window = 4;
  CHECK(run_attention(device, args).error().code == ErrorCode::kUnsupported);
}

TEST_CASE("attention: the plan splits on hardware only") {
  gpu::Caps software, hardware;
  hardware.hardware = true;
  const AttentionShape decode{1, 32, 8, 128, 4095, 0};
  CHECK(plan_attention(decode, true, software).splits == 1);
  CHECK(plan_attention(decode, false, hardware).splits == 1);
  const AttentionPlan plan = plan_attention(decode, true, hardware);
  CHECK(plan.splits > 1);
  CHECK(plan.splits * plan.split_keys >= 4096);
  CHECK(plan.scratch_bytes <= attention_scratch_bytes(32, 128, hardware));
  CHECK(plan_attention({512, 32, 8, 128, 0, 0}, true, hardware).query_tile == 8);
  CHECK(plan_attention({512, 32, 8, 256, 0, 0}, true, hardware).query_tile == 8);
  CHECK(plan_attention({512, 32, 8, 264, 0, 0}, true, hardware).query_tile == 4);
  CHECK(plan_attention({512, 32, 8, 1024, 0, 0}, true, hardware).query_tile == 2);
}

}  // namespace
}  // namespace doppler::kernels
