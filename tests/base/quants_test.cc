#include "base/quants.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <limits>
#include <random>
#include <string>
#include <vector>

#include "base/half.h"
#include "support/files.h"

using namespace doppler;

namespace {

constexpr DType kReadOnly[] = {DType::kQ2_K, DType::kQ3_K, DType::kIQ4_NL, DType::kIQ4_XS, DType::kMXFP4};

constexpr DType kWritable[] = {DType::kF32,  DType::kF16,  DType::kBF16, DType::kQ4_0,
                               DType::kQ4_1, DType::kQ5_0, DType::kQ5_1, DType::kQ8_0,
                               DType::kQ4_K, DType::kQ5_K, DType::kQ6_K};

std::string golden(DType dtype, const char* ending) {
  return std::string(DOPPLER_GOLDEN_DIR "/quants/") + std::string(dtype_name(dtype)) + ending;
}

std::vector<float> floats(const std::vector<std::byte>& bytes) {
  std::vector<float> values(bytes.size() / 4);
  if (!values.empty()) std::memcpy(values.data(), bytes.data(), bytes.size());
  return values;
}

std::vector<std::byte> packed(DType dtype, const std::vector<float>& values) {
  std::vector<std::byte> bytes(row_bytes(dtype, values.size()));
  quantize(dtype, values.data(), values.size(), bytes.data());
  return bytes;
}

std::vector<float> round_trip(DType dtype, const std::vector<float>& values) {
  const auto bytes = packed(dtype, values);
  std::vector<float> back(values.size());
  dequantize(dtype, bytes.data(), back.size(), back.data());
  return back;
}

std::vector<float> normal(unsigned seed, size_t n, float mean = 0, float deviation = 1) {
  std::mt19937 random(seed);
  std::normal_distribution<float> distribution(mean, deviation);
  std::vector<float> values(n);
  for (float& v : values) v = distribution(random);
  return values;
}

double nmse(const std::vector<float>& got, const std::vector<float>& wanted) {
  double error = 0, size = 0;
  for (size_t i = 0; i < got.size(); ++i) {
    error += std::pow(static_cast<double>(got[i]) - wanted[i], 2);
    size += static_cast<double>(wanted[i]) * wanted[i];
  }
  return size > 0 ? error / size : error;
}

/// Each 32 values on `top` + 1 evenly spaced levels from their least to their greatest.
std::vector<float> spread_evenly(std::vector<float> values, int top) {
  for (size_t g = 0; g < values.size(); g += 32) {
    const auto [low, high] = std::minmax_element(values.begin() + g, values.begin() + g + 32);
    const float least = *low, step = (*high - *low) / static_cast<float>(top);
    for (size_t i = g; i < g + 32; ++i) values[i] = least + step * std::round((values[i] - least) / step);
  }
  return values;
}

}  // namespace

TEST_CASE("packed blocks expand to the very bits of the independent reader") {
  std::vector<DType> types(std::begin(kWritable) + 1, std::end(kWritable));  // all but F32
  types.insert(types.end(), std::begin(kReadOnly), std::end(kReadOnly));
  for (const DType dtype : types) {
    CAPTURE(dtype_name(dtype));
    const DTypeInfo& info = dtype_info(dtype);
    const auto bytes = test::read_bytes(golden(dtype, ".bin"));
    const size_t blocks = bytes.size() / (info.block_bytes + 4 * info.block_elems);
    const size_t n = blocks * info.block_elems, packed_size = blocks * info.block_bytes;
    REQUIRE(n >= 512);
    REQUIRE(bytes.size() == packed_size + 4 * n);
    std::vector<float> got(n);
    dequantize(dtype, bytes.data(), n, got.data());
    size_t different = 0;
    for (size_t i = 0; i < n; ++i) {
      float wanted;
      std::memcpy(&wanted, bytes.data() + packed_size + 4 * i, 4);
      if (!(got[i] == wanted)) ++different;
    }
    CHECK(different == 0);
  }
}

TEST_CASE("simple types pack to the very bytes of the independent writer") {
  const auto input = floats(test::read_bytes(DOPPLER_GOLDEN_DIR "/quants/input.f32"));
  REQUIRE(input.size() == 512);
  for (const DType dtype :
       {DType::kBF16, DType::kF16, DType::kQ4_0, DType::kQ4_1, DType::kQ5_0, DType::kQ5_1, DType::kQ8_0}) {
    CAPTURE(dtype_name(dtype));
    const auto wanted = test::read_bytes(golden(dtype, ".packed"));
    const auto got = packed(dtype, input);
    REQUIRE(got.size() == wanted.size());
    size_t different = 0;
    for (size_t i = 0; i < got.size(); ++i) different += got[i] != wanted[i];
    CHECK(different == 0);
  }
}

TEST_CASE("the search leaves little error on weights like a model's") {
  struct Bound {
    DType dtype;
    double nmse;
  };
  // Normal weights; the bounds stand 5 % above what the search reaches.
  const auto values = normal(1, 64 * 256, 0, 0.02f);
  for (const Bound& bound :
       {Bound{DType::kQ4_K, 0.00526}, {DType::kQ5_K, 0.00127}, {DType::kQ6_K, 0.000323}}) {
    CAPTURE(dtype_name(bound.dtype));
    CHECK(nmse(round_trip(bound.dtype, values), values) < bound.nmse);
  }
  // Without a search: levels spread evenly from least to greatest, scale and min left in full f32.
  CHECK(nmse(round_trip(DType::kQ4_K, values), values) < 0.9 * nmse(spread_evenly(values, 15), values));
  CHECK(nmse(round_trip(DType::kQ5_K, values), values) < nmse(spread_evenly(values, 31), values));
}

TEST_CASE("groups of unlike sizes and one-sided groups keep their shape") {
  for (const DType dtype : {DType::kQ4_K, DType::kQ5_K, DType::kQ6_K}) {
    CAPTURE(dtype_name(dtype));
    auto uneven = normal(2, 256);
    for (size_t i = 0; i < 256; ++i) uneven[i] *= std::exp2(static_cast<float>(i / 32) - 4);
    CHECK(nmse(round_trip(dtype, uneven), uneven) < 0.01);
    const auto positive = normal(3, 256, 5, 0.5f), negative = normal(4, 256, -5, 0.5f);
    CHECK(nmse(round_trip(dtype, positive), positive) < 0.002);
    CHECK(nmse(round_trip(dtype, negative), negative) < 0.002);
    const std::vector<float> zeros(256, 0.0f), constant(256, -0.75f);
    CHECK(round_trip(dtype, zeros) == zeros);
    CHECK(nmse(round_trip(dtype, constant), constant) < 1e-6);
    auto single = zeros;
    single[77] = 3.0f;
    CHECK(nmse(round_trip(dtype, single), single) < 1e-4);
  }
}

TEST_CASE("Q6_K and the simple types pack again what they unpacked without loss of more than rounding") {
  for (const DType dtype : kWritable) {
    CAPTURE(dtype_name(dtype));
    const auto once = round_trip(dtype, normal(5, 1024));
    CHECK(nmse(round_trip(dtype, once), once) < 2e-4);
  }
}

TEST_CASE("values no block can hold give finite blocks") {
  const float inf = std::numeric_limits<float>::infinity(), nan = std::numeric_limits<float>::quiet_NaN();
  for (const DType dtype : kWritable) {
    const auto& info = dtype_info(dtype);
    if (info.block_elems == 1) continue;
    CAPTURE(info.name);
    for (const float odd : {inf, -inf, nan, 3e38f, -3e38f, 1e-40f}) {
      CAPTURE(odd);
      auto values = normal(6, 256, 0, 0.1f);
      values[3] = odd;
      size_t unbounded = 0;
      for (const float v : round_trip(dtype, values)) unbounded += !std::isfinite(v);
      CHECK(unbounded == 0);
    }
  }
}

TEST_CASE("every f16 and bf16 survives widening and narrowing, ties go to even") {
  size_t wrong = 0;
  for (uint32_t h = 0; h < 65536; ++h) {
    const auto bits = static_cast<uint16_t>(h);
    const float wide = f16_to_f32(bits);
    wrong += std::isnan(wide) ? !std::isnan(f16_to_f32(f32_to_f16(wide))) : f32_to_f16(wide) != bits;
    const float brain = bf16_to_f32(bits);
    wrong += std::isnan(brain) ? !std::isnan(bf16_to_f32(f32_to_bf16(brain))) : f32_to_bf16(brain) != bits;
  }
  CHECK(wrong == 0);
  CHECK(f32_to_f16(1.0f + 0x1p-11f) == 0x3c00);             // halfway between 1 and the next: even is 1
  CHECK(f32_to_f16(1.0f + 3 * 0x1p-11f) == 0x3c02);         // halfway between odd and even
  CHECK(f32_to_f16(1.0f + 0x1p-11f + 0x1p-23f) == 0x3c01);  // just above half
  CHECK(f32_to_f16(65519.0f) == 0x7bff);
  CHECK(f32_to_f16(65520.0f) == 0x7c00);
  CHECK(f32_to_f16(0x1p-25f) == 0);  // half of the least subnormal: even is zero
  CHECK(f32_to_f16(0x1.8p-25f) == 1);
  CHECK(f32_to_bf16(std::bit_cast<float>(0x3f808000u)) == 0x3f80);
  CHECK(f32_to_bf16(std::bit_cast<float>(0x3f818000u)) == 0x3f82);
}

TEST_CASE("type names and sizes") {
  CHECK(dtype_from_name("q4_k_m") == DType::kQ4_K);
  CHECK(dtype_from_name("bf16") == DType::kBF16);
  CHECK_FALSE(dtype_from_name("Q9_9").has_value());
  CHECK(dtype_from_ggml(14) == DType::kQ6_K);
  CHECK_FALSE(dtype_from_ggml(999).has_value());
  CHECK(row_bytes(DType::kQ4_K, 640) == 3 * 144);  // padded to whole blocks
  CHECK(row_bytes(DType::kQ8_0, 64) == 68);
  for (const DType dtype : kWritable) {
    CHECK(is_runnable(dtype));
    CHECK(can_quantize(dtype));
    CHECK(dtype_from_name(dtype_name(dtype)) == dtype);
    CHECK(dtype_from_ggml(static_cast<uint32_t>(dtype_info(dtype).ggml_type)) == dtype);
  }
  for (const DType dtype : kReadOnly) {
    CHECK(is_runnable(dtype));
    CHECK_FALSE(can_quantize(dtype));
  }
  CHECK_FALSE(is_runnable(DType::kQ8_K));  // ggml's activations: no file holds it as a weight
}
