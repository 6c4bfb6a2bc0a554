#include "tokenizer/json_score.h"

#include <fmt/format.h>

#include <charconv>
#include <cmath>
#include <cstdint>
#include <limits>

namespace doppler::tokenizer_json {
namespace {

constexpr int kMaxPower = 308;

double power_of_ten(int exponent) {
  const std::string text = fmt::format("1e{}", exponent);
  double value = 1;
  std::from_chars(text.data(), text.data() + text.size(), value);
  return value;
}

double scaled(uint64_t digits, int exponent) {
  auto value = static_cast<double>(digits);
  while (exponent < -kMaxPower && value != 0) {
    value /= power_of_ten(kMaxPower);
    exponent += kMaxPower;
  }
  if (value == 0) return 0;
  if (exponent > kMaxPower) return std::numeric_limits<double>::infinity();
  return exponent < 0 ? value / power_of_ten(-exponent) : value * power_of_ten(exponent);
}

}  // namespace

double read_score(std::string_view token) {
  const bool negative = token.starts_with('-');
  if (negative) token.remove_prefix(1);
  uint64_t digits = 0;
  int exponent = 0;
  bool full = false, fraction = false;
  size_t i = 0;
  for (; i < token.size() && ((token[i] >= '0' && token[i] <= '9') || token[i] == '.'); ++i) {
    if (token[i] == '.') {
      fraction = true;
      continue;
    }
    const auto digit = static_cast<uint64_t>(token[i] - '0');
    full = full || digits > (std::numeric_limits<uint64_t>::max() - digit) / 10;
    // Digits beyond 64 bits count as zeros.
    if (!full) digits = digits * 10 + digit;
    if (fraction != full) exponent += fraction ? -1 : 1;
    if (exponent > 100'000 || exponent < -100'000) break;
  }
  if (i < token.size() && (token[i] == 'e' || token[i] == 'E')) {
    const size_t sign = i + 1 < token.size() && token[i + 1] == '+' ? 1 : 0;
    int more = 0;
    const auto parsed = std::from_chars(token.data() + i + 1 + sign, token.data() + token.size(), more);
    if (parsed.ec != std::errc() || more > 100'000 || more < -100'000)
      more = token[i + 1] == '-' ? -100'000 : 100'000;
    exponent += more;
  }
  const double value = scaled(digits, exponent);
  return negative ? -value : value;
}

std::string write_score(double score) {
  double up = score, down = score;
  for (int step = 0; step < 4; ++step) {
    for (const double near : {up, down})
      if (std::string text = fmt::format("{}", near); read_score(text) == score) return text;
    up = std::nextafter(up, std::numeric_limits<double>::infinity());
    down = std::nextafter(down, -std::numeric_limits<double>::infinity());
  }
  return fmt::format("{}", score);
}

}  // namespace doppler::tokenizer_json
