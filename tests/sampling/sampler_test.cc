#include "sampling/sampler.h"

#include <doctest/doctest.h>

#include <cmath>
#include <limits>
#include <numeric>
#include <vector>

using namespace doppler;

namespace {

constexpr float kInf = std::numeric_limits<float>::infinity();
constexpr float kNan = std::numeric_limits<float>::quiet_NaN();

SamplerOptions plain(uint64_t seed = 1) {
  SamplerOptions o;
  o.temperature = 1;
  o.top_k = 0;
  o.top_p = 1;
  o.min_p = 0;
  o.seed = seed;
  return o;
}

std::vector<int> counts(const SamplerOptions& options, const std::vector<float>& logits, int draws,
                        const std::vector<int32_t>& history = {}) {
  Sampler sampler(options);
  std::vector<int> n(logits.size());
  for (int i = 0; i < draws; ++i) ++n[static_cast<size_t>(sampler.sample(logits, history).value())];
  return n;
}

std::vector<double> softmax(const std::vector<float>& logits, double temperature) {
  std::vector<double> p;
  double sum = 0;
  for (float l : logits) sum += p.emplace_back(std::exp(static_cast<double>(l) / temperature));
  for (double& x : p) x /= sum;
  return p;
}

double chi_squared(const std::vector<int>& n, const std::vector<double>& p) {
  const int draws = std::accumulate(n.begin(), n.end(), 0);
  double chi = 0;
  for (size_t i = 0; i < n.size(); ++i) {
    const double want = p[i] * draws;
    chi += (n[i] - want) * (n[i] - want) / want;
  }
  return chi;
}

}  // namespace

TEST_CASE("the generator gives the published SplitMix64 sequence") {
  Random random(1234567);
  CHECK(random.next() == 6457827717110365317ull);
  CHECK(random.next() == 3203168211198807973ull);
  CHECK(random.next() == 9817491932198370423ull);
}

TEST_CASE("drawn frequencies follow the softmax (chi-squared)") {
  const std::vector<float> logits = {2.0f, 0.5f, -1.0f, 0.0f, 1.5f, -0.3f, 0.9f, 1.0f};
  for (const float temperature : {0.5f, 1.0f, 2.0f}) {
    CAPTURE(temperature);
    SamplerOptions o = plain(42);
    o.temperature = temperature;
    // 7 degrees of freedom: 24.3 is exceeded once in a thousand seeds.
    CHECK(chi_squared(counts(o, logits, 40000), softmax(logits, static_cast<double>(temperature))) < 24.3);
  }
  SUBCASE("and a wrong temperature is told apart") {
    CHECK(chi_squared(counts(plain(42), logits, 40000), softmax(logits, 1.1)) > 24.3);
  }
}

TEST_CASE("top-k keeps exactly k, the lowest ids on ties") {
  const std::vector<float> logits = {1, 3, 2, 3, 0, 3};
  SamplerOptions o = plain();
  o.top_k = 2;
  const auto n = counts(o, logits, 2000);
  CHECK(n[1] > 800);
  CHECK(n[3] > 800);
  CHECK(n[1] + n[3] == 2000);
  o.top_k = 100;  // beyond the vocabulary: all
  CHECK(counts(o, logits, 4000)[0] > 0);
  o.top_k = -3;  // off
  CHECK(counts(o, logits, 4000)[4] > 0);
}

TEST_CASE("top-p keeps the smallest set that reaches p") {
  // Probabilities 0.5, 0.3, 0.15, 0.05, stored out of order.
  const std::vector<float> logits = {std::log(0.15f), std::log(0.5f), std::log(0.05f), std::log(0.3f)};
  SamplerOptions o = plain();
  o.top_p = 0.75f;
  auto n = counts(o, logits, 4000);
  CHECK(n[0] == 0);
  CHECK(n[2] == 0);
  CHECK(chi_squared({n[1], n[3]}, {0.625, 0.375}) < 10.8);
  o.top_p = 0.85f;
  n = counts(o, logits, 4000);
  CHECK(n[0] > 0);
  CHECK(n[2] == 0);
  o.top_p = 0.0f;
  CHECK(counts(o, logits, 100)[1] == 100);
  o.top_p = -1.0f;
  CHECK(counts(o, logits, 100)[1] == 100);
}

TEST_CASE("top-p over a large flat vocabulary sorts in steps and keeps the right count") {
  std::vector<float> logits(20000);
  for (size_t i = 0; i < logits.size(); ++i)
    logits[i] = -static_cast<float>((i * 7919) % logits.size()) * 1e-4f;
  std::vector<double> p = softmax(logits, 1);
  std::sort(p.rbegin(), p.rend());
  double reached = 0;
  size_t kept = 0;
  while (reached < 0.5) reached += p[kept++];
  SamplerOptions o = plain(7);
  o.top_p = 0.5f;
  size_t drawn_outside = 0;
  Sampler sampler(o);
  for (int i = 0; i < 300; ++i) {
    const size_t id = static_cast<size_t>(sampler.sample(logits, {}).value());
    if ((id * 7919) % logits.size() > kept + 1) ++drawn_outside;
  }
  CHECK(drawn_outside == 0);
}

TEST_CASE("min-p keeps what is likely enough beside the likeliest") {
  const std::vector<float> logits = {std::log(0.6f), std::log(0.35f), std::log(0.05f)};
  SamplerOptions o = plain();
  o.min_p = 0.5f;
  const auto n = counts(o, logits, 2000);
  CHECK(n[0] > 0);
  CHECK(n[1] > 0);
  CHECK(n[2] == 0);
  o.min_p = 1.0f;
  CHECK(counts(o, logits, 200)[0] == 200);
  o.min_p = 5.0f;
  CHECK(counts(o, logits, 200)[0] == 200);
}

TEST_CASE("temperature at and around zero") {
  const std::vector<float> logits = {1.0f, 5.0f, 5.0f, 4.999f, -kInf};
  for (const float temperature : {0.0f, -1.0f}) {
    SamplerOptions o = plain();
    o.temperature = temperature;
    CHECK(counts(o, logits, 50)[1] == 50);  // the lowest of the tied ids
  }
  SamplerOptions o = plain();
  o.temperature = 1e-9f;
  const auto n = counts(o, logits, 500);  // a draw between the tied, nothing else, no NaN
  CHECK(n[1] + n[2] == 500);
  CHECK(n[1] > 150);
  CHECK(n[2] > 150);
  o.temperature = 3e38f;  // the difference of 6e38 becomes 2: e^-2 against 1
  CHECK(counts(o, {3e38f, -3e38f}, 1000)[1] > 70);
}

TEST_CASE("top-p and min-p choose before temperature") {
  const std::vector<float> logits = {std::log(0.7f), std::log(0.2f), std::log(0.1f)};
  SamplerOptions o = plain();
  o.temperature = 100;  // after temperature these would be about a third each
  o.top_p = 0.65f;
  CHECK(counts(o, logits, 500)[0] == 500);
  o.top_p = 1;
  o.min_p = 0.2f;
  const auto n = counts(o, logits, 500);
  CHECK(n[1] > 150);
  CHECK(n[2] == 0);
}

TEST_CASE("repetition penalty lowers what was seen within its window, once") {
  const std::vector<float> logits = {2.0f, 1.5f, -1.0f, -1.2f};
  SamplerOptions o = plain();
  o.temperature = 0;
  o.repetition_penalty = 2;
  CHECK(Sampler(o).sample(logits, std::vector<int32_t>{}).value() == 0);
  CHECK(Sampler(o).sample(logits, std::vector<int32_t>{0, 0, 0}).value() == 1);  // 2 / 2 = 1, once
  CHECK(Sampler(o).sample(logits, std::vector<int32_t>{0, 1}).value() == 0);     // 1 against 0.75
  const std::vector<float> negative = {-1.0f, -1.5f};
  CHECK(Sampler(o).sample(negative, std::vector<int32_t>{0}).value() == 1);  // -1 * 2 = -2
  o.repetition_window = 1;
  CHECK(Sampler(o).sample(logits, std::vector<int32_t>{0, 3}).value() == 0);  // 0 is out of the window
  o.repetition_window = 0;
  CHECK(Sampler(o).sample(logits, std::vector<int32_t>{0}).value() == 0);
  o.repetition_window = 64;
  CHECK(Sampler(o).sample(logits, std::vector<int32_t>{-5, 900}).value() == 0);  // ids beyond are ignored
}

TEST_CASE("the same seed gives the same ids, another gives others") {
  std::vector<float> logits(1000);
  for (size_t i = 0; i < logits.size(); ++i) logits[i] = std::sin(static_cast<float>(i));
  const auto run = [&](uint64_t seed) {
    SamplerOptions o;
    o.seed = seed;
    Sampler sampler(o);
    std::vector<int32_t> ids;
    for (int i = 0; i < 20; ++i) ids.push_back(sampler.sample(logits, ids).value());
    return ids;
  };
  CHECK(run(5) == run(5));
  CHECK(run(5) != run(6));
}

TEST_CASE("logits that are not finite are an error, masked ones are never drawn") {
  for (const float temperature : {0.0f, 1.0f}) {
    SamplerOptions o = plain();
    o.temperature = temperature;
    Sampler sampler(o);
    const auto failed = [&](const std::vector<float>& logits) {
      const auto result = sampler.sample(logits, {});
      return !result && result.error().code == ErrorCode::kBadInput;
    };
    CHECK(failed({kNan, kNan, kNan}));
    CHECK(failed({0, kNan, 1}));
    CHECK(failed({0, 1, kInf}));
    CHECK(failed({-kInf, -kInf}));
    CHECK(failed({}));
    CHECK(sampler.sample(std::vector<float>{-kInf, 0, -kInf}, {}).value() == 1);
  }
}

TEST_CASE("options are checked") {
  SamplerOptions o;
  CHECK(check_sampler_options(o).has_value());
  o.repetition_penalty = 0;
  CHECK_FALSE(check_sampler_options(o).has_value());
  o.repetition_penalty = 1;
  o.temperature = kNan;
  CHECK_FALSE(check_sampler_options(o).has_value());
  o.temperature = -1;
  o.top_k = -1;
  o.top_p = -1;
  o.min_p = 2;
  CHECK(check_sampler_options(o).has_value());
}
