#include "sampling/logprob.h"

#include <doctest/doctest.h>

#include <cmath>
#include <limits>
#include <vector>

using namespace doppler;

TEST_CASE("log-probabilities of raw logits") {
  const std::vector<float> logits = {std::log(0.2f), std::log(0.5f), std::log(0.2f), std::log(0.1f)};
  const auto step = step_logprobs(logits, 3, 3).value();
  CHECK(step.chosen.id == 3);
  CHECK(step.chosen.logprob == doctest::Approx(std::log(0.1)).epsilon(1e-6));
  REQUIRE(step.top.size() == 3);
  CHECK(step.top[0].id == 1);
  CHECK(step.top[1].id == 0);  // the lowest id of a tie first
  CHECK(step.top[2].id == 2);
  CHECK(step.top[0].logprob == doctest::Approx(std::log(0.5)).epsilon(1e-6));
  CHECK(step_logprobs(logits, 0, 0).value().top.empty());
  CHECK(step_logprobs(logits, 0, 100).value().top.size() == 4);
}

TEST_CASE("large logits neither overflow nor lose the sum") {
  const std::vector<float> logits(262144, 3e38f);
  CHECK(log_sum_exp(logits).value() == doctest::Approx(static_cast<double>(3e38f)));
  const std::vector<float> flat(262144, 100.0f);
  CHECK(step_logprobs(flat, 7, 0).value().chosen.logprob ==
        doctest::Approx(-std::log(262144.0)).epsilon(1e-12));
}

TEST_CASE("ids and logits out of range are errors") {
  const std::vector<float> logits = {0, 1};
  CHECK_FALSE(step_logprobs(logits, 2, 1).has_value());
  CHECK_FALSE(step_logprobs(logits, -1, 1).has_value());
  CHECK_FALSE(step_logprobs(std::vector<float>{std::numeric_limits<float>::quiet_NaN()}, 0, 1).has_value());
}

TEST_CASE("KL divergence against its formula") {
  const std::vector<float> p = {std::log(0.5f), std::log(0.5f)}, q = {std::log(0.25f), std::log(0.75f)};
  CHECK(kl_divergence(p, q).value() ==
        doctest::Approx(0.5 * std::log(2.0) + 0.5 * std::log(2.0 / 3)).epsilon(1e-6));
  CHECK(kl_divergence(p, p).value() == doctest::Approx(0).epsilon(1e-12));
  std::vector<float> shifted = p;
  for (float& l : shifted) l += 10;  // the same distribution
  CHECK(std::abs(kl_divergence(p, shifted).value()) < 1e-6);
  CHECK_FALSE(kl_divergence(p, std::vector<float>{0}).has_value());
}
