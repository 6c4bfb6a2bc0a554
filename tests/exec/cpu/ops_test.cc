// Each op against its formula in f64, at odd sizes and on strided rows.
#include "exec/cpu/ops.h"

#include <doctest/doctest.h>

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
      cpu::rope_angles(table, kFirst, 3, angles);
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
      cpu::gated_act(pool, in.rows, activation, out.rows);
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

}  // namespace
}  // namespace doppler::test
