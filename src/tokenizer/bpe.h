#pragma once
// Byte pair encoding: one engine for merges by rank and merges by score, characters or bytes.
#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "tokenizer/token_index.h"
#include "tokenizer/vocab.h"

namespace doppler {

/// (left id, right id) -> (rank, merged id). Open addressing, 16 bytes a slot.
class PairTable {
 public:
  struct Entry {
    uint32_t rank;
    int32_t merged;
  };
  explicit PairTable(size_t pairs);
  void insert(int32_t left, int32_t right, Entry entry);  // the first insertion of a pair stays
  const Entry* find(int32_t left, int32_t right) const;

 private:
  struct Slot {
    uint64_t key;
    Entry entry;
  };
  size_t slot_of(uint64_t key) const;
  std::vector<Slot> slots_;
};

/// The merge engine of one vocabulary. Immutable; encode() may run in any number of threads with a Scratch
/// each.
class Bpe {
 public:
  /// Working memory, reused from piece to piece.
  struct Scratch {
    struct Symbol {
      int32_t id, previous, next;
    };
    struct Candidate {
      uint32_t rank;
      int32_t left;  // symbol index
      int32_t left_id, right_id;
    };
    std::vector<Symbol> symbols;
    std::vector<Candidate> heap;
  };

  /// `vocab` and `index` must outlive the engine. Errors: a merge whose joined text is no token.
  static Result<Bpe> make(const VocabData& vocab, const TokenIndex& index);

  /// Appends the ids of one piece. n log n in the longest unbroken stretch, whatever the text.
  void encode(std::string_view piece, Scratch& scratch, std::vector<int32_t>& ids) const;

 private:
  Bpe(const VocabData& vocab, const TokenIndex& index, size_t pairs);
  bool is_symbol(int32_t id) const;
  int32_t character_id(std::string_view character) const;
  void find_boundaries(const std::vector<MergePair>& merges);
  void push_character(std::string_view character, Scratch& scratch) const;
  void push_byte(unsigned char byte, Scratch& scratch) const;
  bool has_affixes() const;
  std::string affixed(std::string_view character, bool first, bool last) const;
  static size_t affix_index(bool first, bool last) { return (first ? 2u : 0u) + (last ? 1u : 0u); }
  void encode_word(std::string_view piece, Scratch& scratch, std::vector<int32_t>& ids) const;
  void push_symbol(int32_t id, Scratch& scratch) const;
  void merge(Scratch& scratch, std::vector<int32_t>& ids) const;
  bool whole_piece(std::string_view piece, std::vector<int32_t>& ids) const;

  const VocabData* vocab_;
  const TokenIndex* index_;
  PairTable pairs_;
  std::array<int32_t, 256> byte_ids_{};  // byte letters, or <0xNN> tokens; -1 where there is none
  // The same of byte letters with the marks of their place in a word, by affix_index.
  std::array<std::array<int32_t, 256>, 4> affixed_ids_{};
  std::array<int32_t, 128> ascii_ids_{};  // tokens of single ASCII characters, -1 where there is none
  // Symbol pairs that some merge can join across. Two neighbours that are not in it never end up in one
  // token, so a text without spaces to split at is still cut into short stretches.
  std::vector<uint64_t> joints_;  // hash set, 0 is free
  bool cuts_ = false;
};

}  // namespace doppler
