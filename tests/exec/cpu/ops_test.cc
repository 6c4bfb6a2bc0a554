// Each op against its formula in f64, at odd sizes and on strided rows.
#include "exec/cpu/ops.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <numbers>

#include "random_values.h"

namespace doppler::test {
namespace {

using cpu::Rows;

// Rows of `width` columns that start at column `offset` of rows `stride` wide.
struct Matrix {
  std::vector<float> values;
  Rows rows;
  Matrix(uint32_t seed, uint32_t n, uint32_t width, uint32_t offset = 0, uint32_t extra = 0, float size = 1)
      : values(random_values(seed, size_t{n} * (offset + width + extra), size)) {
    rows = {values.data() + offset, uint64_t{offset} + width + extra, n, width};
  }
  double at(uint32_t r, uint32_t c) const { return rows.row(r)[c]; }
  std::vector<float> packed() const {
    std::vector<float> out;
    for (uint32_t r = 0; r < rows.rows; ++r) out.insert(out.end(), rows.row(r), rows.row(r) + rows.width);
    return out;
  }
};

TEST_CASE("rms_norm: groups, offset and values beyond f16") {
  ThreadPool pool(2);
  for (const uint32_t group : {1u, 3u, 24u, 64u, 641u}) {
    CAPTURE(group);
    Matrix in(1, 5, 2 * group, 3, 4, 2e5f), out(2, 5, 2 * group);
    const auto weight = random_values(3, group);
    cpu::rms_norm(pool, in.rows, weight, 1.0f, 1e-6f, out.rows);
    std::vector<double> wanted;
    for (uint32_t r = 0; r < 5; ++r)
      for (uint32_t c = 0; c < 2 * group; ++c) {
        double squares = 0;
        for (uint32_t i = 0; i < group; ++i) squares += std::pow(in.at(r, c / group * group + i), 2);
        wanted.push_back(in.at(r, c) / std::sqrt(squares / group + 1e-6) * (weight[c % group] + 1.0));
      }
    CHECK(nmse(out.packed(), wanted) < 1e-12);
    const std::vector<float> apart = out.packed();
    cpu::rms_norm(pool, in.rows, weight, 1.0f, 1e-6f, in.rows);  // in place
    CHECK(in.packed() == apart);
  }
}

TEST_CASE("rope: both pairings, partial heads, far positions") {
  ThreadPool pool(2);
  for (const bool interleaved : {false, true}) {
    for (const uint32_t pairs : {1u, 5u, 12u}) {
      CAPTURE(interleaved);
      CAPTURE(pairs);
      constexpr uint32_t kHead = 24, kHeads = 3, kFirst = 30000;
      graph::RopeTable table;
      for (uint32_t i = 0; i < pairs; ++i)
        table.inv_freq.push_back(static_cast<float>(std::pow(10000.0, -static_cast<double>(i) / pairs)));
      Matrix in(4, 3, kHead * kHeads, 1, 2);
      std::vector<double> wanted(size_t{3} * kHead * kHeads);
      for (uint32_t r = 0; r < 3; ++r)
        for (uint32_t c = 0; c < kHead * kHeads; ++c) {
          const uint32_t d = c % kHead, head = c - d;
          const bool rotated = d < 2 * pairs;
          const uint32_t i = interleaved ? d / 2 : d % pairs;
          const uint32_t a = head + (interleaved ? 2 * i : i),
                         b = head + (interleaved ? 2 * i + 1 : i + pairs);
          const double angle = (double{kFirst} + r) * (rotated ? table.inv_freq[i] : 0.0f);
          const double turned = c == a ? in.at(r, a) * std::cos(angle) - in.at(r, b) * std::sin(angle)
                                       : in.at(r, b) * std::cos(angle) + in.at(r, a) * std::sin(angle);
          wanted[size_t{r} * kHead * kHeads + c] = rotated ? turned : in.at(r, c);
        }
      std::vector<float> angles(size_t{3} * 2 * pairs);
      cpu::rope_angles(table.inv_freq, table.magnitude, kFirst, 3, angles);
      cpu::rope(pool, in.rows, angles, pairs, kHead, interleaved, in.rows);
      CHECK(nmse(in.packed(), wanted) < 1e-12);
    }
  }
}

TEST_CASE("gated activations, softcap and add") {
  ThreadPool pool(2);
  for (const uint32_t width : {1u, 7u, 96u}) {
    CAPTURE(width);
    Matrix in(5, 3, 2 * width, 0, 1, 8.0f), out(6, 3, width);
    for (const auto activation : {graph::Activation::kSilu, graph::Activation::kGeluTanh}) {
      graph::Node node{};
      node.activation = activation;
      cpu::gated_act(pool, in.rows, node, out.rows);
      std::vector<double> wanted;
      for (uint32_t r = 0; r < 3; ++r)
        for (uint32_t c = 0; c < width; ++c) {
          const double g = in.at(r, c);
          const double gelu =
              0.5 * g * (1 + std::tanh(std::sqrt(2 / std::numbers::pi) * (g + 0.044715 * g * g * g)));
          const double gate = activation == graph::Activation::kSilu ? g / (1 + std::exp(-g)) : gelu;
          wanted.push_back(gate * in.at(r, width + c));
        }
      CHECK(nmse(out.packed(), wanted) < 1e-11);
    }
    Matrix a(7, 4, width, 2, 0, 1e5f), b(8, 4, width), sum(9, 4, width);
    std::vector<double> added, capped;
    for (uint32_t r = 0; r < 4; ++r)
      for (uint32_t c = 0; c < width; ++c) {
        added.push_back(a.at(r, c) + b.at(r, c));
        capped.push_back(30 * std::tanh(a.at(r, c) / 30));
      }
    cpu::add(pool, a.rows, b.rows, sum.rows);
    CHECK(nmse(sum.packed(), added) < 1e-12);
    cpu::softcap(pool, a.rows, 30.0f, a.rows);
    CHECK(nmse(a.packed(), capped) < 1e-12);
  }
}

TEST_CASE("layer norm: mean, variance, weight and bias") {
  ThreadPool pool(2);
  for (const uint32_t width : {1u, 5u, 384u}) {
    CAPTURE(width);
    Matrix in(11, 3, width, 1, 1), out(12, 3, width);
    const std::vector<float> weight = random_values(13, width), bias = random_values(14, width);
    cpu::layer_norm(pool, in.rows, weight, bias, 1e-5f, out.rows);
    std::vector<double> wanted;
    for (uint32_t r = 0; r < 3; ++r) {
      double mean = 0, variance = 0;
      for (uint32_t c = 0; c < width; ++c) mean += in.at(r, c) / width;
      for (uint32_t c = 0; c < width; ++c) variance += (in.at(r, c) - mean) * (in.at(r, c) - mean) / width;
      for (uint32_t c = 0; c < width; ++c)
        wanted.push_back((in.at(r, c) - mean) / std::sqrt(variance + 1e-5) * weight[c] + bias[c]);
    }
    CHECK(nmse(out.packed(), wanted) < 1e-11);
  }
}

TEST_CASE("activations: every kind, and gates that are grouped, interleaved and clamped") {
  using enum graph::Activation;
  CHECK(cpu::activate(kRelu, -2.0f) == 0.0f);
  CHECK(cpu::activate(kRelu, 2.0f) == 2.0f);
  CHECK(cpu::activate(kSigmoid, 0.5f) == doctest::Approx(1 / (1 + std::exp(-0.5))));
  CHECK(cpu::activate(kGeluErf, 0.7f) == doctest::Approx(0.35 * (1 + std::erf(0.7 / std::sqrt(2.0)))));
  CHECK(cpu::activate(kGeluQuick, 0.7f) == doctest::Approx(0.7 / (1 + std::exp(-1.702 * 0.7))));

  ThreadPool pool(2);
  constexpr uint32_t kGroups = 3, kHalf = 5;
  Matrix in(15, 2, 2 * kHalf * kGroups, 0, 1, 9.0f), out(16, 2, kHalf * kGroups);
  graph::Node node{};
  node.group = 2 * kHalf;
  node.activation = kSwigluClamped;
  node.limit = 7;
  node.alpha = 1.702f;
  for (const bool interleaved : {false, true}) {
    CAPTURE(interleaved);
    node.interleaved = interleaved;
    cpu::gated_act(pool, in.rows, node, out.rows);
    std::vector<double> wanted;
    for (uint32_t r = 0; r < 2; ++r)
      for (uint32_t g = 0; g < kGroups; ++g)
        for (uint32_t c = 0; c < kHalf; ++c) {
          const uint32_t start = g * 2 * kHalf;
          double gate = in.at(r, start + (interleaved ? 2 * c : c));
          double up = in.at(r, start + (interleaved ? 2 * c + 1 : kHalf + c));
          gate = std::min(gate, 7.0);
          up = std::clamp(up, -7.0, 7.0);
          wanted.push_back(gate / (1 + std::exp(-1.702 * gate)) * (up + 1));
        }
    CHECK(nmse(out.packed(), wanted) < 1e-11);
  }
}

TEST_CASE("pooling: the mean of rows and length 1, a factor a row") {
  ThreadPool pool(2);
  Matrix in(17, 4, 6), mean(18, 1, 6), factor(19, 4, 1), scaled(20, 4, 6);
  cpu::mean_rows(in.rows, mean.rows);
  cpu::mul(pool, in.rows, factor.rows, scaled.rows);
  double length = 0;
  for (uint32_t c = 0; c < 6; ++c) {
    double wanted = 0;
    for (uint32_t r = 0; r < 4; ++r) {
      wanted += in.at(r, c) / 4.0;
      CHECK(scaled.at(r, c) == doctest::Approx(in.at(r, c) * factor.at(r, 0)));
    }
    CHECK(mean.at(0, c) == doctest::Approx(wanted));
    length += wanted * wanted;
  }
  const double first = mean.at(0, 0);
  cpu::l2_norm(mean.rows, 1e-12f, mean.rows);
  CHECK(mean.at(0, 0) == doctest::Approx(first / std::sqrt(length)));
}

}  // namespace
}  // namespace doppler::test
