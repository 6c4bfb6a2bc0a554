// The inner loops of each instruction set against plain f64 forms.
#include "exec/cpu/simd.h"

#include <doctest/doctest.h>

#include <cmath>
#include <limits>
#include <string>

#include "base/half.h"
#include "base/quants.h"
#include "random_values.h"
#include "support/random_blocks.h"

namespace doppler::test {
namespace {

using cpu::Int8Rows;
using cpu::kQuantGroup;
using cpu::OpenRows;
using cpu::Simd;

constexpr DType kPacked[] = {DType::kQ4_0,   DType::kQ4_1,   DType::kQ5_0, DType::kQ5_1, DType::kQ8_0,
                             DType::kQ2_K,   DType::kQ3_K,   DType::kQ4_K, DType::kQ5_K, DType::kQ6_K,
                             DType::kIQ4_NL, DType::kIQ4_XS, DType::kMXFP4};

template <class Body>
void for_each_simd(const Body& body) {
  for (const int limit : {1, 2, 0}) {
    const Simd& simd = cpu::choose_simd(limit);
    CAPTURE(std::string(simd.name));
    body(simd);
  }
}

struct OpenBuffers {
  std::vector<int8_t> q;
  std::vector<float> scales, mins;
  size_t columns;
  OpenBuffers(size_t rows, size_t n)
      : q(rows * n), scales(rows * n / 4), mins(rows * n / cpu::kMinGroup), columns(n) {}
  OpenRows rows() { return {q.data(), scales.data(), mins.data(), columns}; }
};

struct Int8Buffers {
  std::vector<int8_t> q;
  std::vector<float> scales, sums;
  size_t columns;
  Int8Buffers(size_t rows, size_t n)
      : q(rows * n), scales(rows * n / kQuantGroup), sums(rows * n / cpu::kMinGroup), columns(n) {}
  Int8Rows rows() { return {q.data(), scales.data(), sums.data(), columns}; }
};

TEST_CASE("opened blocks hold the values that dequantize gives") {
  for_each_simd([](const Simd& simd) {
    for (const DType dtype : kPacked) {
      CAPTURE(std::string(dtype_name(dtype)));
      constexpr size_t kColumns = 768;
      const std::vector<std::byte> packed = random_blocks(dtype, kColumns, 7, 3.0f);
      std::vector<float> wanted(kColumns), got(kColumns);
      dequantize(dtype, packed.data(), kColumns, wanted.data());
      OpenBuffers open(2, kColumns);
      simd.open_row(dtype, packed.data(), kColumns / kQuantGroup, open.rows(), 1);
      simd.open_to_f32(open.rows(), 1, kColumns, got.data());
      // One rounding may differ: scale * q + min is fused where the processor can.
      for (size_t i = 0; i < kColumns; ++i) CHECK(std::abs(got[i] - wanted[i]) <= 1e-5f);
      bool any_min = false;
      for (const float min : open.mins) any_min |= min != 0;
      CHECK(any_min == cpu::has_mins(dtype));
    }
  });
}

TEST_CASE("a block cut short is opened as far as asked") {
  for_each_simd([](const Simd& simd) {
    for (const DType dtype :
         {DType::kQ2_K, DType::kQ3_K, DType::kQ4_K, DType::kQ5_K, DType::kQ6_K, DType::kIQ4_XS}) {
      const std::vector<std::byte> packed = random_blocks(dtype, 512, 8, 1.0f);
      std::vector<float> wanted(512), got(300);
      dequantize(dtype, packed.data(), 512, wanted.data());
      OpenBuffers open(1, 320);
      simd.open_row(dtype, packed.data(), 10, open.rows(), 0);
      simd.open_to_f32(open.rows(), 0, 300, got.data());
      for (size_t i = 0; i < 300; ++i) CHECK(std::abs(got[i] - wanted[i]) <= 1e-5f);
    }
  });
}

TEST_CASE("f16 widens exactly, specials included") {
  for_each_simd([](const Simd& simd) {
    std::vector<uint16_t> halves;
    for (uint32_t h = 0; h < 65536; h += 7) halves.push_back(static_cast<uint16_t>(h));
    std::vector<float> got(halves.size());
    simd.f16_to_f32(reinterpret_cast<const std::byte*>(halves.data()), halves.size(), got.data());
    for (size_t i = 0; i < halves.size(); ++i) {
      const float wanted = f16_to_f32(halves[i]);
      if (std::isnan(wanted))
        CHECK(std::isnan(got[i]));
      else
        CHECK(got[i] == wanted);
    }
  });
}

TEST_CASE("f32 products at odd sizes, and the same bits whatever the tile") {
  for_each_simd([](const Simd& simd) {
    for (const size_t columns : {1, 3, 4, 15, 16, 17, 63, 64, 65, 257}) {
      for (const size_t rows : {1, 4, 5, 11}) {
        CAPTURE(columns);
        CAPTURE(rows);
        constexpr size_t kTokens = 7;
        const size_t w_stride = columns + 2, x_stride = columns + 3, out_stride = rows + 1;
        const auto w = random_values(1, rows * w_stride), x = random_values(2, kTokens * x_stride, 1e5f);
        std::vector<float> out(kTokens * out_stride), single(kTokens * out_stride);
        simd.products_f32(w.data(), w_stride, rows, x.data(), x_stride, kTokens, columns, out.data(),
                          out_stride);
        for (size_t t = 0; t < kTokens; ++t) {
          for (size_t r = 0; r < rows; ++r) {
            simd.products_f32(w.data() + r * w_stride, w_stride, 1, x.data() + t * x_stride, x_stride, 1,
                              columns, single.data() + t * out_stride + r, out_stride);
            double wanted = 0, size = 0;
            for (size_t k = 0; k < columns; ++k) {
              const double product = static_cast<double>(w[r * w_stride + k]) * x[t * x_stride + k];
              wanted += product;
              size += std::abs(product);
            }
            CHECK(std::abs(out[t * out_stride + r] - wanted) <= 1e-6 * size);
          }
        }
        CHECK(out == single);
      }
    }
  });
}

TEST_CASE("activations quantise to the nearest of 255 steps") {
  for_each_simd([](const Simd& simd) {
    for (const size_t count : {1, 31, 32, 33, 100}) {
      CAPTURE(count);
      const size_t padded = (count + 31) / 32 * 32;
      const auto x = random_values(3, count, 50.0f);
      Int8Buffers buffers(2, padded);
      simd.quantize_row(x.data(), count, buffers.rows(), 1);
      for (size_t g = 0; g < padded / 32; ++g) {
        const float scale = buffers.scales[padded / 32 + g];
        float sum[2] = {};
        for (size_t i = 32 * g; i < 32 * g + 32; ++i) {
          const float back = scale * static_cast<float>(buffers.q[padded + i]);
          sum[i / 16 % 2] += back;
          if (i < count)
            CHECK(std::abs(back - x[i]) <= 0.5001f * scale);
          else
            CHECK(buffers.q[padded + i] == 0);
        }
        for (size_t half = 0; half < 2; ++half)
          CHECK(buffers.sums[padded / 16 + 2 * g + half] == doctest::Approx(sum[half]).epsilon(1e-4));
      }
    }
  });
}

TEST_CASE("zeros, tiny, infinite and missing activations quantise without a trap") {
  for_each_simd([](const Simd& simd) {
    for (const float odd :
         {0.0f, 1e-38f, std::numeric_limits<float>::infinity(), std::numeric_limits<float>::quiet_NaN()}) {
      std::vector<float> x(64, 1.0f);
      for (size_t i = 0; i < 32; ++i) x[i] = odd;
      Int8Buffers buffers(1, 64);
      simd.quantize_row(x.data(), 64, buffers.rows(), 0);
      const bool finite = std::isfinite(odd);
      CHECK(std::isnan(buffers.scales[0]) == !finite);
      if (finite) CHECK(buffers.scales[0] == 0);
      CHECK(buffers.q[40] == 127);
    }
  });
}

TEST_CASE("int8 products equal the sum over quantised values") {
  for_each_simd([](const Simd& simd) {
    for (const DType dtype : kPacked) {
      CAPTURE(std::string(dtype_name(dtype)));
      for (const size_t rows : {1, 4, 6}) {
        constexpr size_t kColumns = 512, kTokens = 3;
        std::vector<float> weights(rows * kColumns);
        OpenBuffers open(rows, kColumns);
        for (size_t r = 0; r < rows; ++r) {
          const auto packed = random_blocks(dtype, kColumns, static_cast<uint32_t>(10 + r), 1.0f);
          dequantize(dtype, packed.data(), kColumns, weights.data() + r * kColumns);
          simd.open_row(dtype, packed.data(), kColumns / kQuantGroup, open.rows(), r);
        }
        const auto x = random_values(4, kTokens * kColumns, 300.0f);
        Int8Buffers quantised(kTokens, kColumns);
        for (size_t t = 0; t < kTokens; ++t)
          simd.quantize_row(x.data() + t * kColumns, kColumns, quantised.rows(), t);
        std::vector<float> out(kTokens * rows);
        simd.products_int8(open.rows(), rows, cpu::has_mins(dtype), quantised.rows(), kTokens, out.data(),
                           rows);
        for (size_t t = 0; t < kTokens; ++t) {
          for (size_t r = 0; r < rows; ++r) {
            double wanted = 0, size = 0;
            for (size_t k = 0; k < kColumns; ++k) {
              const double value = static_cast<double>(quantised.scales[(t * kColumns + k) / 32]) *
                                   quantised.q[t * kColumns + k];
              wanted += weights[r * kColumns + k] * value;
              size += std::abs(weights[r * kColumns + k] * value);
            }
            CHECK(std::abs(out[t * rows + r] - wanted) <= 1e-5 * size);
          }
        }
      }
    }
  });
}

TEST_CASE("int8 products hold at the ends of the range") {
  for_each_simd([](const Simd& simd) {
    OpenBuffers open(1, 32);
    Int8Buffers x(1, 32);
    std::fill(open.scales.begin(), open.scales.end(), 1.0f);
    x.scales[0] = 1.0f;
    for (const int w : {-128, 127})
      for (const int a : {-127, 127}) {
        std::fill(open.q.begin(), open.q.end(), static_cast<int8_t>(w));
        std::fill(x.q.begin(), x.q.end(), static_cast<int8_t>(a));
        float out = 0;
        simd.products_int8(open.rows(), 1, false, x.rows(), 1, &out, 1);
        CHECK(out == static_cast<float>(32 * w * a));
      }
  });
}

TEST_CASE("weighted rows add up in order") {
  for_each_simd([](const Simd& simd) {
    for (const size_t columns : {1, 7, 16, 24, 65}) {
      CAPTURE(columns);
      constexpr size_t kTokens = 5, kRows = 9;
      const auto p = random_values(5, kTokens * kRows), v = random_values(6, kRows * (columns + 1));
      std::vector<float> out(kTokens * columns, 0.5f);
      std::vector<double> wanted(kTokens * columns, 0.5);
      simd.weighted_rows(p.data(), kRows, kTokens, v.data(), columns + 1, kRows, columns, out.data(),
                         columns);
      for (size_t t = 0; t < kTokens; ++t)
        for (size_t j = 0; j < kRows; ++j)
          for (size_t d = 0; d < columns; ++d)
            wanted[t * columns + d] += static_cast<double>(p[t * kRows + j]) * v[j * (columns + 1) + d];
      CHECK(nmse(out, wanted) < 1e-12);
    }
  });
}

}  // namespace
}  // namespace doppler::test
