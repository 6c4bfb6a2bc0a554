#pragma once
// The small parts of a tokenizer.json: normalizer, pre-tokenizer, decoder, post-processor, added tokens.
#include <string>
#include <string_view>
#include <vector>

#include "tokenizer/vocab.h"

namespace doppler::tokenizer_json {

struct AddedTokenText {
  AddedToken token;
  std::string content;
  bool special = false;
};

/// Each takes the JSON text of its part ("null" or "" if it is absent). Errors: kBadFile for malformed parts,
/// kUnsupported for a component this build does not know, by name.
Result<std::vector<NormalizerStep>> read_normalizer(std::string_view json);
Result<std::vector<PreTokenizerStep>> read_pre_tokenizer(std::string_view json);
Result<std::vector<AddedTokenText>> read_added_tokens(std::string_view json);

struct DecoderPart {
  bool byte_level = false;
  DecoderRules rules;
  std::string subword_prefix;  // of a WordPiece decoder
};
Result<DecoderPart> read_decoder(std::string_view json);

/// Token texts that the post-processor puts before and after one text, each with the id the file gives it.
struct PostProcessor {
  std::vector<int32_t> prefix, suffix;
};
Result<PostProcessor> read_post_processor(std::string_view json);

/// What tokenizer_config.json says about special tokens; texts, "" where it is silent.
struct TokenizerConfig {
  std::string bos, eos, unk, pad, tokenizer_class;
  std::optional<bool> add_bos, add_eos;
};
Result<TokenizerConfig> read_tokenizer_config(std::string_view json);

/// Puts the added tokens into `vocab`, which holds the model's. Errors (kBadFile): ids far behind the others,
/// or that another text has.
Result<void> place_added(const std::vector<AddedTokenText>& added, VocabData& vocab);

/// Sets the special tokens from tokenizer_config.json (may be empty); `unk_token` is the model's own, "" if
/// it has none. Errors: kBadFile for a malformed file or a token that is there twice.
Result<void> apply_config(std::string_view tokenizer_config, const std::string& unk_token, VocabData& vocab);

/// Makes a BPE model byte-level if the pre-tokenizer and `decoder` are. Errors (kUnsupported): a decoder that
/// does not go with the model or the pre-tokenizer.
Result<void> set_kind(const DecoderPart& decoder, VocabData& vocab);

}  // namespace doppler::tokenizer_json
