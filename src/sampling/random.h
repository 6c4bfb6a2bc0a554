#pragma once
// A small counter-based generator: draw n of seed s is a pure function of (s, n), the same on every platform.
#include <cstdint>

namespace doppler {

/// SplitMix64 (Steele, Lea, Flood 2014): a 64-bit counter stepped by the golden ratio, then mixed.
class Random {
 public:
  explicit Random(uint64_t seed) : state_(seed) {}

  uint64_t next() {
    state_ += 0x9e3779b97f4a7c15ull;
    uint64_t z = state_;
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9ull;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebull;
    return z ^ (z >> 31);
  }

  /// Uniform in [0, 1), a multiple of 2^-53.
  double next_unit() { return static_cast<double>(next() >> 11) * 0x1p-53; }

 private:
  uint64_t state_;
};

}  // namespace doppler
