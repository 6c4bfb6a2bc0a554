#include "tokenizer/added_tokens.h"

#include <algorithm>

#include "tokenizer/unicode.h"
#include "tokenizer/utf8.h"

namespace doppler {
namespace {

bool word_before(std::string_view text, size_t position) {
  return position > 0 && unicode::is_word(utf8::previous(text, position).code_point);
}

bool word_after(std::string_view text, size_t position) {
  return position < text.size() && unicode::is_word(utf8::next(text, position).code_point);
}

}  // namespace

AddedTokenMatcher::AddedTokenMatcher(std::vector<Entry> entries) : entries_(std::move(entries)) {
  std::erase_if(entries_, [](const Entry& entry) { return entry.text.empty(); });
  std::sort(entries_.begin(), entries_.end(), [](const Entry& a, const Entry& b) { return a.text < b.text; });
  for (const Entry& entry : entries_) starts_[static_cast<unsigned char>(entry.text[0])] = true;
}

const AddedTokenMatcher::Entry* AddedTokenMatcher::longest_at(std::string_view text, size_t position) const {
  // Narrow the sorted list byte by byte to the entries that share the text's prefix; the shortest comes
  // first.
  auto low = entries_.begin(), high = entries_.end();
  const Entry* longest = nullptr;
  for (size_t depth = 0; position + depth < text.size(); ++depth) {
    const auto byte = static_cast<unsigned char>(text[position + depth]);
    const auto at = [depth](const Entry& entry) {
      return entry.text.size() > depth ? static_cast<int>(static_cast<unsigned char>(entry.text[depth])) : -1;
    };
    low = std::partition_point(low, high, [&](const Entry& entry) { return at(entry) < byte; });
    high = std::partition_point(low, high, [&](const Entry& entry) { return at(entry) <= byte; });
    if (low == high) break;
    if (low->text.size() == depth + 1) longest = &*low;
  }
  return longest;
}

std::optional<AddedTokenMatcher::Match> AddedTokenMatcher::find(std::string_view text, size_t from) const {
  if (entries_.empty()) return std::nullopt;
  for (size_t i = from; i < text.size(); ++i) {
    if (!starts_[static_cast<unsigned char>(text[i])]) continue;
    const Entry* entry = longest_at(text, i);
    if (entry == nullptr) continue;
    size_t begin = i, end = i + entry->text.size();
    if (entry->token.single_word && (word_before(text, begin) || word_after(text, end))) {
      i = end - 1;
      continue;
    }
    if (entry->token.lstrip) {
      while (begin > from) {
        const utf8::Unit unit = utf8::previous(text.substr(from), begin - from);
        if (!unicode::is_space(unit.code_point)) break;
        begin -= unit.length;
      }
    }
    if (entry->token.rstrip) {
      while (end < text.size()) {
        const utf8::Unit unit = utf8::next(text, end);
        if (!unicode::is_space(unit.code_point)) break;
        end += unit.length;
      }
    }
    return Match{begin, end, entry->token.id};
  }
  return std::nullopt;
}

}  // namespace doppler
