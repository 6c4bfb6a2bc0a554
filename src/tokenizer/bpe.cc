#include "tokenizer/bpe.h"

#include <algorithm>
#include <bit>
#include <string>

#include "tokenizer/byte_letters.h"
#include "tokenizer/byte_tokens.h"
#include "tokenizer/utf8.h"

namespace doppler {
namespace {

constexpr uint64_t kFree = ~uint64_t{0};
// A stretch no merge rule cuts is encoded in parts of this many symbols, which bounds working memory to about
// 120 MB: only megabytes of one repeated character get here.
constexpr size_t kMaxStretch = size_t{1} << 22;

uint64_t pair_key(int32_t left, int32_t right) {
  return static_cast<uint64_t>(static_cast<uint32_t>(left)) << 32 | static_cast<uint32_t>(right);
}

uint64_t mix(uint64_t key) {
  key *= 0x9e3779b97f4a7c15u;
  return key ^ key >> 32;
}

bool later(const Bpe::Scratch::Candidate& a, const Bpe::Scratch::Candidate& b) {
  return a.rank != b.rank ? a.rank > b.rank : a.left > b.left;
}

std::string_view first_character(std::string_view text) { return text.substr(0, utf8::next(text, 0).length); }
std::string_view last_character(std::string_view text) {
  return text.substr(text.size() - utf8::previous(text, text.size()).length);
}

}  // namespace

PairTable::PairTable(size_t pairs) : slots_(std::bit_ceil(pairs * 2 + 1), Slot{kFree, {0, 0}}) {}

size_t PairTable::slot_of(uint64_t key) const {
  const size_t mask = slots_.size() - 1;
  size_t slot = mix(key) & mask;
  while (slots_[slot].key != kFree && slots_[slot].key != key) slot = (slot + 1) & mask;
  return slot;
}

void PairTable::insert(int32_t left, int32_t right, Entry entry) {
  const uint64_t key = pair_key(left, right);
  Slot& slot = slots_[slot_of(key)];
  if (slot.key == kFree) slot = {key, entry};
}

const PairTable::Entry* PairTable::find(int32_t left, int32_t right) const {
  const Slot& slot = slots_[slot_of(pair_key(left, right))];
  return slot.key == kFree ? nullptr : &slot.entry;
}

Bpe::Bpe(const VocabData& vocab, const TokenIndex& index, size_t pairs)
    : vocab_(&vocab), index_(&index), pairs_(pairs) {}

// Text itself never turns into control, unknown, byte or unused tokens.
bool Bpe::is_symbol(int32_t id) const {
  if (id < 0) return false;
  const TokenType type = vocab_->types[static_cast<size_t>(id)];
  return type == TokenType::kNormal || type == TokenType::kUserDefined;
}

int32_t Bpe::character_id(std::string_view character) const {
  const int32_t id = index_->find(character);
  return is_symbol(id) ? id : -1;
}

Result<Bpe> Bpe::make(const VocabData& vocab, const TokenIndex& index) {
  std::vector<MergePair> derived;
  std::vector<uint32_t> ranks;
  if (vocab.kind == VocabKind::kScoreBpe) derived = merges_from_scores(vocab, &ranks);
  const std::vector<MergePair>& merges = vocab.kind == VocabKind::kScoreBpe ? derived : vocab.merges;

  Bpe bpe(vocab, index, merges.size());
  std::string joined;
  for (size_t i = 0; i < merges.size(); ++i) {
    const std::string& left = vocab.tokens[static_cast<size_t>(merges[i].left)];
    const std::string& right = vocab.tokens[static_cast<size_t>(merges[i].right)];
    joined = left;
    // What goes on inside a word is spelled with the prefix; the joined token carries that of its left part.
    const bool goes_on = !vocab.subword_prefix.empty() && right.starts_with(vocab.subword_prefix);
    joined += std::string_view(right).substr(goes_on ? vocab.subword_prefix.size() : 0);
    const int32_t merged = index.find(joined);
    if (merged < 0)
      return fail(ErrorCode::kBadFile, "[tokenizer] merge {} joins '{}' and '{}', but '{}' is no token", i,
                  left, right, joined);
    bpe.pairs_.insert(merges[i].left, merges[i].right,
                      {ranks.empty() ? static_cast<uint32_t>(i) : ranks[i], merged});
  }
  const bool byte_level = vocab.kind == VocabKind::kByteLevelBpe;
  for (int b = 0; b < 256; ++b) {
    const auto byte = static_cast<unsigned char>(b);
    std::string text;
    if (byte_level) {
      utf8::append(text, byte_letters::letter_of(byte));
    } else if (vocab.byte_fallback) {
      text = byte_token_text(byte);
    }
    const int32_t id = index.find(text);
    bpe.byte_ids_[byte] = byte_level && !bpe.is_symbol(id) ? -1 : id;
    if (byte_level && bpe.has_affixes()) {
      for (const bool first : {false, true})
        for (const bool last : {false, true})
          bpe.affixed_ids_[bpe.affix_index(first, last)][byte] =
              bpe.character_id(bpe.affixed(text, first, last));
    }
  }
  for (char c = 0;; ++c) {
    bpe.ascii_ids_[static_cast<size_t>(c)] = bpe.character_id({&c, 1});
    if (c == 127) break;
  }
  if (!byte_level && !bpe.has_affixes()) bpe.find_boundaries(merges);
  return bpe;
}

void Bpe::find_boundaries(const std::vector<MergePair>& merges) {
  std::vector<uint64_t> keys;
  for (const MergePair& merge : merges) {
    const std::string& left = vocab_->tokens[static_cast<size_t>(merge.left)];
    const std::string& right = vocab_->tokens[static_cast<size_t>(merge.right)];
    // Merges over byte tokens have texts that do not show which symbols they are made of.
    if (left.find("<0x") != std::string::npos || right.find("<0x") != std::string::npos) {
      if (vocab_->byte_fallback && (byte_token_value(std::string_view(left).substr(0, 6)) >= 0 ||
                                    byte_token_value(std::string_view(right).substr(0, 6)) >= 0))
        return;
    }
    const int32_t a = character_id(last_character(left)), b = character_id(first_character(right));
    if (a >= 0 && b >= 0) keys.push_back(pair_key(a, b) + 1);
  }
  std::sort(keys.begin(), keys.end());
  keys.erase(std::unique(keys.begin(), keys.end()), keys.end());
  joints_.assign(std::bit_ceil(keys.size() * 2 + 1), 0);
  const size_t mask = joints_.size() - 1;
  for (const uint64_t key : keys) {
    size_t slot = mix(key) & mask;
    while (joints_[slot] != 0) slot = (slot + 1) & mask;
    joints_[slot] = key;
  }
  cuts_ = true;
}

bool Bpe::has_affixes() const { return !vocab_->subword_prefix.empty() || !vocab_->word_suffix.empty(); }

// How the vocabulary spells a character at its place in a word.
std::string Bpe::affixed(std::string_view character, bool first, bool last) const {
  std::string text = first ? std::string() : vocab_->subword_prefix;
  text += character;
  if (last) text += vocab_->word_suffix;
  return text;
}

void Bpe::push_symbol(int32_t id, Scratch& scratch) const {
  const auto index = static_cast<int32_t>(scratch.symbols.size());
  scratch.symbols.push_back({id, index - 1, index + 1});
}

void Bpe::push_character(std::string_view character, Scratch& scratch) const {
  const auto first = static_cast<unsigned char>(character[0]);
  const int32_t own = first < 0x80 && character.size() == 1 ? ascii_ids_[first] : character_id(character);
  if (own >= 0) return push_symbol(own, scratch);
  bool bytes = vocab_->byte_fallback;
  for (const char c : character) bytes = bytes && byte_ids_[static_cast<unsigned char>(c)] >= 0;
  if (bytes) {
    for (const char c : character) push_symbol(byte_ids_[static_cast<unsigned char>(c)], scratch);
  } else if (vocab_->unk) {
    const bool fused =
        vocab_->fuse_unknown && !scratch.symbols.empty() && scratch.symbols.back().id == *vocab_->unk;
    if (!fused) push_symbol(*vocab_->unk, scratch);
  }
}

// A vocabulary may lack bytes it never saw in training. They give no token, as in other implementations; only
// those that UTF-8 never contains are ill-formed text and show as U+FFFD.
void Bpe::push_byte(unsigned char byte, Scratch& scratch) const {
  if (byte_ids_[byte] >= 0) return push_symbol(byte_ids_[byte], scratch);
  if (byte != 0xc0 && byte != 0xc1 && byte < 0xf5) return;
  for (const char c : utf8::kReplacement) {
    const int32_t id = byte_ids_[static_cast<unsigned char>(c)];
    if (id >= 0) push_symbol(id, scratch);
  }
}

bool Bpe::whole_piece(std::string_view piece, std::vector<int32_t>& ids) const {
  std::string letters;
  if (vocab_->kind == VocabKind::kByteLevelBpe) {
    for (const char c : piece) utf8::append(letters, byte_letters::letter_of(static_cast<unsigned char>(c)));
    piece = letters;
  }
  const int32_t id = index_->find(piece);
  if (!is_symbol(id)) return false;
  ids.push_back(id);
  return true;
}

// A piece of a vocabulary that marks where words go on or end.
void Bpe::encode_word(std::string_view piece, Scratch& scratch, std::vector<int32_t>& ids) const {
  const bool bytes = vocab_->kind == VocabKind::kByteLevelBpe;
  for (size_t i = 0; i < piece.size();) {
    if (scratch.symbols.size() >= kMaxStretch) merge(scratch, ids);
    const size_t length = bytes ? 1 : utf8::next(piece, i).length;
    const bool first = i == 0, last = i + length == piece.size();
    if (bytes) {
      const int32_t id = affixed_ids_[affix_index(first, last)][static_cast<unsigned char>(piece[i])];
      if (id >= 0) push_symbol(id, scratch);
    } else {
      push_character(affixed(piece.substr(i, length), first, last), scratch);
    }
    i += length;
  }
  merge(scratch, ids);
}

void Bpe::encode(std::string_view piece, Scratch& scratch, std::vector<int32_t>& ids) const {
  if (vocab_->ignore_merges && whole_piece(piece, ids)) return;
  scratch.symbols.clear();
  if (has_affixes()) return encode_word(piece, scratch, ids);
  if (vocab_->kind == VocabKind::kByteLevelBpe) {
    for (const char c : piece) {
      if (scratch.symbols.size() >= kMaxStretch) merge(scratch, ids);
      push_byte(static_cast<unsigned char>(c), scratch);
    }
    return merge(scratch, ids);
  }
  const size_t mask = joints_.size() - 1;
  const auto joins = [&](int32_t left, int32_t right) {
    const uint64_t key = pair_key(left, right) + 1;
    for (size_t slot = mix(key) & mask; joints_[slot] != 0; slot = (slot + 1) & mask)
      if (joints_[slot] == key) return true;
    return false;
  };
  for (size_t i = 0; i < piece.size();) {
    const utf8::Unit unit = utf8::next(piece, i);
    const size_t before = scratch.symbols.size();
    push_character(piece.substr(i, unit.length), scratch);
    i += unit.length;
    if (before == 0 || scratch.symbols.size() == before) continue;
    const bool cut = before >= kMaxStretch ||
                     (cuts_ && !joins(scratch.symbols[before - 1].id, scratch.symbols[before].id));
    if (!cut) continue;
    // The stretch before this character is complete: encode it, keep the character's symbols.
    std::array<int32_t, 4> kept{};
    const size_t count = scratch.symbols.size() - before;
    for (size_t k = 0; k < count; ++k) kept[k] = scratch.symbols[before + k].id;
    scratch.symbols.resize(before);
    merge(scratch, ids);
    for (size_t k = 0; k < count; ++k) push_symbol(kept[k], scratch);
  }
  merge(scratch, ids);
}

void Bpe::merge(Scratch& scratch, std::vector<int32_t>& ids) const {
  auto& symbols = scratch.symbols;
  auto& heap = scratch.heap;
  if (symbols.empty()) return;
  symbols.back().next = -1;
  heap.clear();
  const auto consider = [&](int32_t left) {
    if (left < 0) return false;
    const auto& a = symbols[static_cast<size_t>(left)];
    if (a.next < 0) return false;
    const int32_t right_id = symbols[static_cast<size_t>(a.next)].id;
    const PairTable::Entry* entry = pairs_.find(a.id, right_id);
    if (entry == nullptr) return false;
    heap.push_back({entry->rank, left, a.id, right_id});
    return true;
  };
  for (size_t i = 0; i + 1 < symbols.size(); ++i) consider(static_cast<int32_t>(i));
  std::make_heap(heap.begin(), heap.end(), later);
  while (!heap.empty()) {
    std::pop_heap(heap.begin(), heap.end(), later);
    const Scratch::Candidate best = heap.back();
    heap.pop_back();
    auto& left = symbols[static_cast<size_t>(best.left)];
    // A candidate is stale when either side has merged with something else since.
    if (left.id != best.left_id || left.next < 0) continue;
    auto& right = symbols[static_cast<size_t>(left.next)];
    if (right.id != best.right_id) continue;
    left.id = pairs_.find(best.left_id, best.right_id)->merged;
    right.id = -1;
    left.next = right.next;
    if (left.next >= 0) symbols[static_cast<size_t>(left.next)].previous = best.left;
    if (consider(left.previous)) std::push_heap(heap.begin(), heap.end(), later);
    if (consider(best.left)) std::push_heap(heap.begin(), heap.end(), later);
  }
  for (int32_t i = 0; i >= 0; i = symbols[static_cast<size_t>(i)].next)
    ids.push_back(symbols[static_cast<size_t>(i)].id);
  symbols.clear();
}

}  // namespace doppler
