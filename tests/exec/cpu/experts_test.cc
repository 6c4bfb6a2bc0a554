// Routing and products of a mixture of experts against plain loops in double.
#include "exec/cpu/experts.h"

#include <doctest/doctest.h>

#include <cmath>
#include <cstring>
#include <numeric>

#include "exec/cpu/attention.h"
#include "random_values.h"

namespace doppler::test {
namespace {

cpu::Rows rows_of(std::vector<float>& values, uint32_t rows, uint32_t width) {
  return {values.data(), width, rows, width};
}

TEST_CASE("route: the largest logits, of equals the lower number, and their weights") {
  ThreadPool pool(2);
  std::vector<float> logits{0.5f, 2, 2, -1, 1, /* row 2 */ -3, -2, -1, -5, -4};
  std::vector<float> chosen(2 * 6), all(2 * 6);
  cpu::route(pool, rows_of(logits, 2, 5), 3, graph::Routing::kSoftmaxOfChosen, rows_of(chosen, 2, 6));
  cpu::route(pool, rows_of(logits, 2, 5), 3, graph::Routing::kSoftmaxOverAll, rows_of(all, 2, 6));
  const float numbers[2][3] = {{1, 2, 4}, {2, 1, 0}};
  for (size_t r = 0; r < 2; ++r) {
    double of_chosen = 0, of_all = 0;
    for (size_t s = 0; s < 3; ++s) of_chosen += std::exp(logits[r * 5 + static_cast<size_t>(numbers[r][s])]);
    for (size_t e = 0; e < 5; ++e) of_all += std::exp(logits[r * 5 + e]);
    for (size_t s = 0; s < 3; ++s) {
      const double weight = std::exp(logits[r * 5 + static_cast<size_t>(numbers[r][s])]);
      CHECK(chosen[r * 6 + s] == numbers[r][s]);
      CHECK(all[r * 6 + s] == numbers[r][s]);
      CHECK(chosen[r * 6 + 3 + s] == doctest::Approx(weight / of_chosen));
      CHECK(all[r * 6 + 3 + s] == doctest::Approx(weight / of_all));
    }
  }
}

TEST_CASE("expert_linear: shared and separate inputs, stacked weights, biases, and expert_sum") {
  ThreadPool pool(2);
  const cpu::Simd& simd = cpu::choose_simd();
  constexpr uint32_t kExperts = 4, kRows = 5, kColumns = 12, kTokens = 3, kTopK = 2;
  const std::vector<float> first = random_values(1, size_t{kExperts} * kRows * kColumns);
  const std::vector<float> second = random_values(2, size_t{kExperts} * kRows * kColumns);
  const std::vector<float> bias = random_values(3, size_t{kExperts} * kRows);
  const graph::Weight shape{"w", DType::kF32, kRows, kColumns, kExperts};
  const auto stack = [&](const std::vector<float>& values) {
    std::vector<graph::WeightData> data(kExperts);
    for (uint32_t e = 0; e < kExperts; ++e) {
      data[e].bytes =
          std::as_bytes(std::span(values)).subspan(size_t{e} * kRows * kColumns * 4, kRows * kColumns * 4);
      data[e].row_bytes = kColumns * 4;
    }
    return data;
  };
  const auto first_data = stack(first), second_data = stack(second);
  const std::vector<cpu::ExpertWeight> weights{{&shape, first_data, bias}, {&shape, second_data, {}}};
  std::vector<float> routes{2, 0, 0.75f, 0.25f, 3, 2, 0.5f, 0.5f, 0, 1, 0.9f, 0.1f};
  cpu::ExpertScratch scratch;
  for (const bool shared : {true, false}) {
    CAPTURE(shared);
    const uint32_t in_width = shared ? kColumns : kTopK * kColumns, width = 2 * kRows;
    std::vector<float> in = random_values(4, size_t{kTokens} * in_width);
    std::vector<float> out(size_t{kTokens} * kTopK * width), sum(size_t{kTokens} * width);
    cpu::expert_linear(pool, simd, rows_of(in, kTokens, in_width), rows_of(routes, kTokens, 2 * kTopK), kTopK,
                       weights, false, scratch, rows_of(out, kTokens, kTopK * width));
    cpu::expert_sum(pool, rows_of(out, kTokens, kTopK * width), rows_of(routes, kTokens, 2 * kTopK), kTopK,
                    rows_of(sum, kTokens, width));
    for (uint32_t t = 0; t < kTokens; ++t)
      for (uint32_t c = 0; c < width; ++c) {
        double summed = 0;
        for (uint32_t s = 0; s < kTopK; ++s) {
          const auto e = static_cast<uint32_t>(routes[t * 2 * kTopK + s]);
          const uint32_t row = c % kRows;
          const std::vector<float>& w = c < kRows ? first : second;
          double wanted = c < kRows ? bias[e * kRows + row] : 0.0f;
          for (uint32_t k = 0; k < kColumns; ++k)
            wanted += double{w[(e * kRows + row) * kColumns + k]} *
                      in[t * in_width + (shared ? 0 : s * kColumns) + k];
          CHECK(out[(t * kTopK + s) * width + c] == doctest::Approx(wanted).epsilon(1e-5));
          summed += wanted * routes[t * 2 * kTopK + kTopK + s];
        }
        CHECK(sum[t * width + c] == doctest::Approx(summed).epsilon(1e-5));
      }
  }
}

TEST_CASE("attention: sinks join the sum, without causality every row sees all") {
  ThreadPool pool(2);
  const cpu::Simd& simd = cpu::choose_simd();
  constexpr uint32_t kHeads = 4, kKvHeads = 2, kDim = 8, kTokens = 21;
  const int owner = 0;
  cpu::CpuKvCache kv(&owner, {{kKvHeads, kDim, 0}}, 64, KvType::kF32);
  REQUIRE(kv.reserve(kTokens).has_value());
  const std::vector<float> k = random_values(5, size_t{kTokens} * kKvHeads * kDim);
  const std::vector<float> v = random_values(6, size_t{kTokens} * kKvHeads * kDim);
  for (uint32_t t = 0; t < kTokens; ++t)
    kv.write(0, t, k.data() + size_t{t} * kKvHeads * kDim, v.data() + size_t{t} * kKvHeads * kDim);
  std::vector<float> q = random_values(7, size_t{kTokens} * kHeads * kDim), out(q.size());
  const std::vector<float> sinks{0.5f, -1, 3, 0};
  for (const bool causal : {true, false}) {
    for (const bool sink : {true, false}) {
      CAPTURE(causal);
      CAPTURE(sink);
      cpu::AttentionParams params{0, kKvHeads, kDim, 0, 0.35f, 0};
      params.causal = causal;
      if (sink) params.sinks = sinks;
      cpu::attention(pool, simd, rows_of(q, kTokens, kHeads * kDim), kv, 0, params,
                     rows_of(out, kTokens, kHeads * kDim));
      for (uint32_t t = 0; t < kTokens; ++t)
        for (uint32_t h = 0; h < kHeads; ++h) {
          double sum = sink ? std::exp(double{sinks[h]}) : 0;
          std::vector<double> wanted(kDim);
          for (uint32_t j = 0; j < (causal ? t + 1 : kTokens); ++j) {
            const size_t at = (size_t{j} * kKvHeads + h / 2) * kDim;
            double score = 0;
            for (uint32_t d = 0; d < kDim; ++d)
              score += double{q[(size_t{t} * kHeads + h) * kDim + d]} * k[at + d];
            const double p = std::exp(0.35 * score);
            sum += p;
            for (uint32_t d = 0; d < kDim; ++d) wanted[d] += p * v[at + d];
          }
          for (uint32_t d = 0; d < kDim; ++d)
            CHECK(out[(size_t{t} * kHeads + h) * kDim + d] == doctest::Approx(wanted[d] / sum).epsilon(1e-5));
        }
    }
  }
}

}  // namespace
}  // namespace doppler::test
