#include "tokenizer/charsmap.h"

#include <cstring>

namespace doppler {
namespace {

// A unit packs the label of the edge that leads to it, whether a key ends there, and where its children lie.
bool has_leaf(uint32_t unit) { return (unit >> 8 & 1) != 0; }
uint32_t label(uint32_t unit) { return unit & (0x80000000u | 0xff); }
uint32_t offset(uint32_t unit) { return (unit >> 10) << ((unit & 0x200) >> 6); }

}  // namespace

Result<CharsMap> CharsMap::make(std::string_view bytes) {
  CharsMap map;
  if (bytes.empty()) return map;
  uint32_t size = 0;
  if (bytes.size() >= 4)
    for (size_t i = 0; i < 4; ++i) size |= uint32_t{static_cast<unsigned char>(bytes[i])} << (8 * i);
  if (bytes.size() < 4 || size > bytes.size() - 4 || size % 4 != 0 || size == 0)
    return fail(
        ErrorCode::kBadFile,
        "[tokenizer] a character map's trie wanted as whole 4-byte units within {} bytes, got {} bytes",
        bytes.size(), size);
  map.units_.resize(size / 4);
  for (size_t i = 0; i < map.units_.size(); ++i)
    for (size_t k = 0; k < 4; ++k)
      map.units_[i] |= uint32_t{static_cast<unsigned char>(bytes[4 + 4 * i + k])} << (8 * k);
  map.targets_ = bytes.substr(4 + size);
  return map;
}

std::optional<CharsMap::Match> CharsMap::find(std::string_view text, bool longest) const {
  std::optional<Match> best;
  if (units_.empty()) return best;
  uint32_t node = offset(units_[0]);
  for (size_t i = 0; i < text.size(); ++i) {
    const auto byte = static_cast<unsigned char>(text[i]);
    if (byte == 0) break;
    node ^= byte;
    if (node >= units_.size() || label(units_[node]) != byte) break;
    const uint32_t unit = units_[node];
    node ^= offset(unit);
    if (node >= units_.size()) break;
    if (!has_leaf(unit)) continue;
    const size_t start = units_[node] & 0x7fffffffu;
    if (start > targets_.size()) break;
    const size_t end = targets_.find('\0', start);
    best =
        Match{i + 1, std::string_view(targets_).substr(start, end == std::string::npos ? end : end - start)};
    if (!longest) break;
  }
  return best;
}

}  // namespace doppler
