#pragma once
// Repeatable values and the measure of error that tests of ops share.
#include <cmath>
#include <cstdint>
#include <random>
#include <span>
#include <vector>

namespace doppler::test {

inline std::vector<float> random_values(uint32_t seed, size_t count, float size = 1.0f) {
  std::mt19937 random(seed);
  std::vector<float> values(count);
  for (float& v : values) v = size * (static_cast<float>(random()) / 2147483648.0f - 1.0f);
  return values;
}

/// Squared error over squared size: 0 means equal.
inline double nmse(std::span<const float> got, std::span<const double> wanted) {
  double error = 0, power = 1e-300;
  for (size_t i = 0; i < wanted.size(); ++i) {
    error += (got[i] - wanted[i]) * (got[i] - wanted[i]);
    power += wanted[i] * wanted[i];
  }
  return error / power;
}

}  // namespace doppler::test
