#pragma once
// The plain data a tokenizer is made from, and the two ways to get it: GGUF metadata and tokenizer.json.
#include <array>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace doppler {

enum class VocabKind : uint8_t {
  kScoreBpe,      // SentencePiece BPE: the best-scored adjacent pair merges first (GGUF model "llama")
  kByteLevelBpe,  // GPT-2 style: text as byte letters, merges by rank (GGUF model "gpt2")
  kFallbackBpe,   // merges by rank over characters, <0xNN> tokens for the rest (tokenizer.json of Gemma,
                  // LLaMA)
  kUnigram,       // the segmentation with the best sum of scores (T5, XLM-R)
  kWordPiece,     // the longest token first, word by word (BERT)
};

enum class TokenType : uint8_t {  // values as GGUF stores them
  kNormal = 1,
  kUnknown = 2,
  kControl = 3,  // matched in text only when special text is parsed; skipped when decoding without specials
  kUserDefined = 4,  // always matched in text
  kUnused = 5,       // never produced by encoding
  kByte = 6,         // <0xNN>
};

/// Two tokens that merge into the token whose text is theirs joined. Position in the list is the rank.
struct MergePair {
  int32_t left, right;
};

/// How a control, unknown or user-defined token is matched in text (the flags of a tokenizer.json added
/// token).
struct AddedToken {
  int32_t id;
  bool lstrip = false;       // white space before it belongs to it
  bool rstrip = false;       // white space after it belongs to it
  bool single_word = false;  // only where no word character touches it
  bool normalized = false;   // matched after the normalizer ran, not before
};

struct NormalizerStep {
  enum class Op : uint8_t {
    kReplace,
    kReplaceRegex,
    kPrepend,
    kNfc,
    kNfd,
    kNfkc,
    kNfkd,
    kLowercase,
    kStrip,          // white space at the ends
    kStripAccents,   // marks (category M)
    kNmt,            // control characters go, odd spaces become spaces
    kBert,           // the parts of BertNormalizer that are switched on
    kPrecompiled,    // a SentencePiece character map, applied as tokenizer.json files mean it
    kSentencePiece,  // the same map and the white space rules, applied as SentencePiece does
  };
  Op op;
  std::string pattern = {};        // kReplace: the literal; kReplaceRegex: the expression; the map's bytes
  std::string content = {};        // what replaces a match, or what is put in front
  bool left = true, right = true;  // kStrip: which ends
  // kBert
  bool clean_text = true, chinese_chars = true, strip_accents = true, lowercase = true;
  // kSentencePiece
  bool dummy_prefix = true, remove_extra_spaces = true, escape_spaces = true, space_as_suffix = false;
};

/// What happens to the matches of a split (names as in tokenizer.json).
enum class SplitBehavior : uint8_t { kRemoved, kIsolated, kMergedWithPrevious, kMergedWithNext, kContiguous };

struct PreTokenizerStep {
  enum class Op : uint8_t {
    kSplitLiteral,  // pattern is literal text
    kSplitRegex,    // pattern is a regular expression
    kDigits,        // numbers (category N), one by one or in runs
    kByteLevel,     // the GPT-2 pattern if use_regex; marks text as byte letters
    kMetaspace,     // spaces become `pattern` (U+2581), then splits before each
    kWords,         // runs of word characters and runs of other characters; white space goes
    kSpaces,        // splits at white space, which goes
    kPunctuation,   // splits at punctuation
  };
  enum class Prepend : uint8_t { kNever, kFirst, kAlways };
  Op op;
  std::string pattern;
  SplitBehavior behavior = SplitBehavior::kIsolated;
  bool invert = false;                // kSplit*: the matches are the text between the matches
  bool individual = false;            // kDigits
  bool add_prefix_space = false;      // kByteLevel
  bool use_regex = true;              // kByteLevel
  bool split = true;                  // kMetaspace
  Prepend prepend = Prepend::kNever;  // kMetaspace
};

/// How tokens become text again. Byte-level vocabularies ignore all of it.
struct DecoderRules {
  bool metaspace = false;      // U+2581 -> space
  bool byte_fallback = false;  // <0xNN> -> the byte
  bool strip_start =
      false;  // one space at the start of a whole text goes (the prefix the normalizer put there)
  bool strip_all = false;     // strip_start: one space of each token until the text has begun
  bool word_pieces = false;   // tokens stand apart unless they start with the vocabulary's subword prefix
  bool cleanup = false;       // word_pieces: no space before "." and the like
  std::string word_end = {};  // what ends a word becomes a space ("</w>"), at the end of a whole text nothing
};

struct VocabData {
  VocabKind kind = VocabKind::kByteLevelBpe;
  std::vector<std::string> tokens;  // by id; an empty text is an id without a token
  std::vector<TokenType> types;     // by id
  std::vector<double> scores;       // by id, kScoreBpe and kUnigram only
  std::vector<MergePair> merges;    // by rank, kByteLevelBpe and kFallbackBpe only
  std::vector<AddedToken> added;    // every control, unknown and user-defined token, by id

  std::vector<NormalizerStep> normalizer;
  std::vector<PreTokenizerStep> pre_tokenizer;
  DecoderRules decoder;
  std::string pre_name;           // GGUF's name of the pre-tokenizer, "" from tokenizer.json
  bool byte_fallback = false;     // characters without a token become <0xNN> tokens
  bool fuse_unknown = false;      // a run of characters without a token is one unknown token
  bool ignore_merges = false;     // a whole piece that is a token is taken as it is
  bool float_paths = false;       // kUnigram: sums of scores are rounded to float, as SentencePiece does
  std::string subword_prefix;     // stands before what goes on inside a word ("##"; BPE, kWordPiece)
  std::string word_suffix;        // stands after the last character of a word ("</w>"; BPE)
  uint32_t max_word_chars = 100;  // kWordPiece: a longer word is unknown

  std::optional<int32_t> bos, eos, unk, pad;
  bool add_bos = false, add_eos = false;  // the model's own rule
  std::vector<int32_t> prefix, suffix;    // what the rule adds around a text (mostly BOS; nothing)
  bool add_space_prefix = false;          // a space is put in front of each stretch of text
  std::vector<int32_t> end_ids;           // tokens that end a generation, eos first
};

/// GGUF's tokenizer.ggml.* keys as the reader found them; spans may be empty where a key is absent.
struct GgufVocabView {
  std::string_view model;  // tokenizer.ggml.model: llama, gpt2 or bert
  std::string_view pre;    // tokenizer.ggml.pre, "" if absent
  std::span<const std::string_view> tokens;
  std::span<const float> scores;
  std::span<const int64_t> types;
  std::span<const std::string_view> merges;  // "left right"
  std::optional<uint64_t> bos, eos, eot, eom, unk, pad, cls, sep;
  std::optional<bool> add_bos, add_eos, add_space_prefix;
};

/// Checks a GGUF vocabulary and makes it plain data. Errors (kBadFile): no tokens, lengths that differ, ids
/// out of range, text that is not UTF-8, duplicates, merges of unknown tokens; kUnsupported: a tokenizer
/// model or pre-tokenizer this build does not know, by name.
Result<VocabData> vocab_from_gguf(const GgufVocabView& view);

/// Reads a Hugging Face tokenizer.json (model BPE, Unigram or WordPiece) and, if not empty, the
/// tokenizer_config.json beside it, which names the special tokens. Components that this build does not know
/// are refused by name (kUnsupported).
Result<VocabData> vocab_from_tokenizer_json(std::string_view json, std::string_view tokenizer_config = {});

/// Reads a SentencePiece model (`tokenizer.model`, `spiece.model`; a ModelProto of type unigram or BPE) and,
/// if not empty, the tokenizer_config.json beside it, which says what is added around a text. Errors:
/// kBadFile for anything malformed, kUnsupported for the model types word and char.
Result<VocabData> vocab_from_sentencepiece(std::string_view model, std::string_view tokenizer_config = {});

/// Writes a tokenizer.json that Hugging Face `tokenizers` reads and that encodes like `vocab` does. Scores
/// become the equivalent list of merges.
std::string to_tokenizer_json(const VocabData& vocab);

/// Every pair of tokens whose joined text is a token too, best score first: BPE over this list gives what BPE
/// by scores gives. `ranks`, if given, receives one rank a pair; pairs with equal scores share one, so that
/// the leftmost merges first as it does by scores.
std::vector<MergePair> merges_from_scores(const VocabData& vocab, std::vector<uint32_t>* ranks = nullptr);

}  // namespace doppler
