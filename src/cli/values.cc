#include "cli/values.h"

#include <charconv>
#include <cmath>

namespace doppler::cli {
namespace {

std::string_view trim(std::string_view text) {
  while (!text.empty() && (text.front() == ' ' || text.front() == '\t')) text.remove_prefix(1);
  while (!text.empty() && (text.back() == ' ' || text.back() == '\t' || text.back() == '\n'))
    text.remove_suffix(1);
  return text;
}

template <class T>
bool parse_number(std::string_view text, T& value) {
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  return error == std::errc() && end == text.data() + text.size();
}

}  // namespace

Result<std::vector<int32_t>> parse_ids(std::string_view text) {
  std::vector<int32_t> ids;
  std::string_view rest = trim(text);
  while (!rest.empty()) {
    const size_t comma = rest.find(',');
    const std::string_view item = trim(rest.substr(0, comma));
    int32_t id = 0;
    if (!parse_number(item, id) || id < 0)
      return fail(ErrorCode::kBadInput, "[ids] token ids such as 1,2,3 wanted, got \"{}\"", item);
    ids.push_back(id);
    if (comma == std::string_view::npos) return ids;
    rest.remove_prefix(comma + 1);
    if (trim(rest).empty()) return fail(ErrorCode::kBadInput, "[ids] a token id wanted after the last comma");
  }
  return ids;
}

std::string check_ids(const std::string& text) {
  const auto ids = parse_ids(text);
  return ids ? std::string() : ids.error().message;
}

std::string check_seed(const std::string& text) {
  uint64_t seed = 0;
  if (parse_number(std::string_view(text), seed)) return {};
  return fmt::format("a whole number from 0 to 2^64 - 1 wanted, got \"{}\"", text);
}

std::string check_number(const std::string& text, NumberRange range, bool whole) {
  double value = 0;
  if (!parse_number(std::string_view(text), value) || !std::isfinite(value) ||
      (whole && std::floor(value) != value))
    return fmt::format("{} wanted, got \"{}\"", whole ? "a whole number" : "a number", text);
  if (value < range.low || value > range.high)
    return fmt::format("a number from {} to {} wanted, got {}", range.low, range.high, text);
  return {};
}

std::optional<uint64_t> parse_size(std::string_view text) {
  size_t used = 0;
  uint64_t number = 0;
  while (used < text.size() && used < 12 && text[used] >= '0' && text[used] <= '9')
    number = number * 10 + static_cast<uint64_t>(text[used++] - '0');
  if (used == 0) return std::nullopt;
  const std::string_view unit = text.substr(used);
  int shift = 0;
  if (unit == "K" || unit == "KiB")
    shift = 10;
  else if (unit == "M" || unit == "MiB")
    shift = 20;
  else if (unit == "G" || unit == "GiB")
    shift = 30;
  else if (!unit.empty() && unit != "B")
    return std::nullopt;
  return number <= UINT64_MAX >> shift ? std::optional(number << shift) : std::nullopt;
}

std::string check_size(const std::string& text) {
  const auto size = parse_size(text);
  return size && *size > 0 ? "" : "a size such as 64MiB wanted, got \"" + text + "\"";
}

}  // namespace doppler::cli
