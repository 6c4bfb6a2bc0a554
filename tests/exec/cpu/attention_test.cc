// Attention over the cache against its formula in f64; the cache itself.
#include "exec/cpu/attention.h"

#include <doctest/doctest.h>

#include <cmath>

#include "base/half.h"
#include "random_values.h"

namespace doppler::test {
namespace {

using cpu::CpuKvCache;
using cpu::Rows;

struct Case {
  uint32_t heads, kv_heads, head_dim, window;
  float softcap;
  KvType type;
  uint32_t past, rows;  // positions in the cache before the rows
};

void check_case(const Case& c, unsigned threads) {
  CAPTURE(c.heads);
  CAPTURE(c.head_dim);
  CAPTURE(c.window);
  CAPTURE(c.past);
  CAPTURE(c.rows);
  const uint32_t width = c.kv_heads * c.head_dim, total = c.past + c.rows;
  CpuKvCache kv(nullptr, {{c.kv_heads, c.head_dim, c.window}}, total, c.type);
  REQUIRE(kv.reserve(total).has_value());
  std::vector<float> k = random_values(1, size_t{total} * width), v = random_values(2, size_t{total} * width);
  for (uint32_t i = 0; i < total; ++i) kv.write(0, i, k.data() + i * width, v.data() + i * width);
  if (c.type == KvType::kF16) {
    for (float& x : k) x = f16_to_f32(f32_to_f16(x));
    for (float& x : v) x = f16_to_f32(f32_to_f16(x));
  }
  const uint32_t q_width = c.heads * c.head_dim;
  std::vector<float> q = random_values(3, size_t{c.rows} * q_width, 4.0f), out(q.size());
  ThreadPool pool(threads);
  const float scale = 1.0f / std::sqrt(static_cast<float>(c.head_dim));
  cpu::attention(pool, cpu::choose_simd(), Rows{q.data(), q_width, c.rows, q_width}, kv, c.past,
                 {0, c.kv_heads, c.head_dim, c.window, scale, c.softcap},
                 Rows{out.data(), q_width, c.rows, q_width});

  std::vector<double> wanted(out.size());
  for (uint32_t r = 0; r < c.rows; ++r) {
    for (uint32_t h = 0; h < c.heads; ++h) {
      const uint32_t kv_offset = h / (c.heads / c.kv_heads) * c.head_dim, i = c.past + r;
      std::vector<double> weights(total);
      double sum = 0;
      for (uint32_t j = 0; j <= i; ++j) {
        if (c.window > 0 && i - j >= c.window) continue;
        double dot = 0;
        for (uint32_t d = 0; d < c.head_dim; ++d)
          dot += static_cast<double>(q[r * q_width + h * c.head_dim + d]) * k[j * width + kv_offset + d];
        dot *= scale;
        if (c.softcap > 0) dot = c.softcap * std::tanh(dot / c.softcap);
        weights[j] = std::exp(dot);
        sum += weights[j];
      }
      for (uint32_t j = 0; j < total; ++j)
        for (uint32_t d = 0; d < c.head_dim; ++d)
          wanted[r * q_width + h * c.head_dim + d] += weights[j] / sum * v[j * width + kv_offset + d];
    }
  }
  CHECK(nmse(out, wanted) < 1e-10);
}

TEST_CASE("attention: grouped heads, windows, caps, both cache types") {
  for (const KvType type : {KvType::kF32, KvType::kF16}) {
    for (const unsigned threads : {1u, 3u}) {
      check_case({1, 1, 1, 0, 0, type, 0, 1}, threads);
      check_case({4, 1, 24, 0, 0, type, 0, 17}, threads);
      check_case({6, 2, 24, 8, 0, type, 5, 33}, threads);
      check_case({9, 3, 64, 0, 50.0f, type, 255, 2}, threads);  // across a cache block
      check_case({4, 1, 256, 300, 0, type, 700, 1}, threads);   // one row, window inside the cache
      check_case({2, 2, 7, 64, 0, type, 63, 66}, threads);      // window and tile edges meet
      check_case({2, 1, 16, 1, 0, type, 20, 3}, threads);       // sees itself only
    }
  }
}

TEST_CASE("cache memory grows with use and comes in blocks") {
  CpuKvCache kv(nullptr, {{2, 8, 0}, {1, 8, 4}}, 1u << 20, KvType::kF16);
  CHECK(kv.size_bytes() == 0);
  REQUIRE(kv.reserve(1).has_value());
  const uint64_t one = kv.size_bytes();
  CHECK(one == 256 * 2 * (16 + 8) * 2);
  REQUIRE(kv.reserve(256).has_value());
  CHECK(kv.size_bytes() == one);
  REQUIRE(kv.reserve(257).has_value());
  CHECK(kv.size_bytes() == 2 * one);
  kv.set_length(200);
  kv.truncate(300);
  CHECK(kv.length() == 200);
  kv.truncate(10);
  CHECK(kv.length() == 10);
}

}  // namespace
}  // namespace doppler::test
