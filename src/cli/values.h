#pragma once
// Values of options, with the ranges that both the command line and --stdin-jsonl hold them to.
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace doppler::cli {

struct NumberRange {
  double low, high;
};
inline constexpr NumberRange kTokenCount{0, 1u << 30};
inline constexpr NumberRange kContext{1, 1u << 30};
inline constexpr NumberRange kFinite{-1e30, 1e30};
inline constexpr NumberRange kPenalty{1e-6, 1e6};
inline constexpr NumberRange kTopK{-1, 1u << 30};
inline constexpr NumberRange kLogprobs{0, 1000};
inline constexpr NumberRange kThreads{0, 1024};
inline constexpr NumberRange kChunk{1, 1u << 20};

/// "1,2,3" (blanks allowed) to ids. Errors: anything else, or a number beyond 2^31 - 1.
Result<std::vector<int32_t>> parse_ids(std::string_view text);

/// A check for CLI11: an empty string if `text` is a list of ids, else what is wrong.
std::string check_ids(const std::string& text);

/// A check for CLI11: a whole number from 0 to 2^64 - 1.
std::string check_seed(const std::string& text);

/// "4096", "64MiB", "4G" (the same as 4GiB) to bytes; nullopt: anything else.
std::optional<uint64_t> parse_size(std::string_view text);

/// A check for CLI11: a size above 0.
std::string check_size(const std::string& text);

/// A check for CLI11: a number in `range`, whole if `whole`.
std::string check_number(const std::string& text, NumberRange range, bool whole);

}  // namespace doppler::cli
