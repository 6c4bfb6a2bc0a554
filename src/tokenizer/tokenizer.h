#pragma once
// Text to token ids and back. A Tokenizer never changes after it is made: any number of threads may share it.
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "tokenizer/vocab.h"

namespace doppler {

enum class BosRule : uint8_t {
  kModel,   // BOS (and EOS) as the model's files ask
  kAlways,  // BOS in front whatever they ask, if there is one
  kNever,   // nothing added
};

struct EncodeOptions {
  BosRule bos = BosRule::kNever;
  bool parse_special = false;  // text that spells a control token becomes that token
  // At most so many ids, those that `bos` adds among them: the text loses its end, what is added stays. 0 is
  // no limit.
  size_t max_ids = 0;
};

struct DecodeOptions {
  bool skip_special = false;  // control tokens give no text
};

class Tokenizer {
 public:
  ~Tokenizer();
  Tokenizer(const Tokenizer&) = delete;
  Tokenizer& operator=(const Tokenizer&) = delete;

  /// Token ids of `text`. Every text is valid: a byte that is not UTF-8 becomes its byte token, or the
  /// unknown token where the vocabulary has none. User-defined tokens always match, control tokens with
  /// parse_special.
  std::vector<int32_t> encode(std::string_view text, const EncodeOptions& options = {}) const;

  /// Text of `ids`, well-formed UTF-8: bytes that are not become U+FFFD. Ids out of range give no text.
  std::string decode(std::span<const int32_t> ids, const DecodeOptions& options = {}) const;

  /// The bytes of `ids` as they are, without the replacement.
  std::string decode_bytes(std::span<const int32_t> ids, const DecodeOptions& options = {}) const;

  /// The bytes one token stands for inside a text ("" if the id is out of range). Tokens that WordPiece sets
  /// apart start with a space.
  std::string token_bytes(int32_t id) const;

  /// The token as the vocabulary spells it (U+2581 for spaces, byte letters); "" if the id is out of range.
  std::string_view token_text(int32_t id) const;

  /// The id the vocabulary gives to exactly this spelling.
  std::optional<int32_t> token_id(std::string_view text) const;

  int32_t vocab_size() const;
  std::optional<int32_t> bos() const { return vocab().bos; }
  std::optional<int32_t> eos() const { return vocab().eos; }
  std::span<const int32_t> end_ids() const { return vocab().end_ids; }  // tokens that end a generation
  bool is_control(int32_t id) const;                                    // control or unknown token
  const VocabData& vocab() const;

 private:
  friend Result<std::unique_ptr<Tokenizer>> make_tokenizer(VocabData vocab);
  struct Parts;
  explicit Tokenizer(std::unique_ptr<Parts> parts);
  std::unique_ptr<Parts> parts_;
};

/// Errors: kBadFile for data that contradicts itself (lengths, ids, merges), kUnsupported for a pre-tokenizer
/// order this build cannot run.
Result<std::unique_ptr<Tokenizer>> make_tokenizer(VocabData vocab);

/// Text of a generation, token by token: only whole characters come out.
class StreamDecoder {
 public:
  /// `tokenizer` must outlive the decoder.
  explicit StreamDecoder(const Tokenizer& tokenizer, DecodeOptions options = {});

  /// The characters that this token completes, "" if none. What push() and finish() return, joined, is the
  /// decode() of all ids, except that what belongs to the ends of a whole text (the space at its start, after
  /// the end of its last word) stays: the text goes on from a prompt.
  std::string push(int32_t id);

  /// Ends the text: a character that was never completed is U+FFFD.
  std::string finish();

 private:
  const Tokenizer* tokenizer_;
  DecodeOptions options_;
  std::string pending_;  // the start of a character, at most 3 bytes between calls
};

}  // namespace doppler
