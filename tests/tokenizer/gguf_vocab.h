#pragma once
// Reads a GGUF file's vocabulary the way the engine does, for tests of real models.
#include <string>

#include "formats/gguf/gguf.h"
#include "tokenizer/vocab.h"

namespace doppler::test {

inline Result<VocabData> read_gguf_vocab(const std::string& path) {
  DOPPLER_TRY(const auto file, gguf::GgufFile::open(path));
  GgufVocabView view;
  DOPPLER_TRY(const auto model, file->get_string("tokenizer.ggml.model"));
  DOPPLER_TRY(const auto pre, file->get_string("tokenizer.ggml.pre"));
  DOPPLER_TRY(const auto* tokens, file->get_array("tokenizer.ggml.tokens", gguf::ValueType::kString));
  DOPPLER_TRY(const auto* merges, file->get_array("tokenizer.ggml.merges", gguf::ValueType::kString));
  DOPPLER_TRY(const auto scores, file->get_floats("tokenizer.ggml.scores"));
  DOPPLER_TRY(const auto types, file->get_ints("tokenizer.ggml.token_type"));
  DOPPLER_TRY(view.bos, file->get_uint("tokenizer.ggml.bos_token_id"));
  DOPPLER_TRY(view.eos, file->get_uint("tokenizer.ggml.eos_token_id"));
  DOPPLER_TRY(view.eot, file->get_uint("tokenizer.ggml.eot_token_id"));
  DOPPLER_TRY(view.eom, file->get_uint("tokenizer.ggml.eom_token_id"));
  DOPPLER_TRY(view.unk, file->get_uint("tokenizer.ggml.unknown_token_id"));
  DOPPLER_TRY(view.pad, file->get_uint("tokenizer.ggml.padding_token_id"));
  DOPPLER_TRY(view.cls, file->get_uint("tokenizer.ggml.cls_token_id"));
  DOPPLER_TRY(view.sep, file->get_uint("tokenizer.ggml.seperator_token_id"));
  DOPPLER_TRY(view.add_bos, file->get_bool("tokenizer.ggml.add_bos_token"));
  DOPPLER_TRY(view.add_eos, file->get_bool("tokenizer.ggml.add_eos_token"));
  DOPPLER_TRY(view.add_space_prefix, file->get_bool("tokenizer.ggml.add_space_prefix"));
  view.model = model.value_or("");
  view.pre = pre.value_or("");
  if (tokens != nullptr) view.tokens = tokens->strings;
  if (merges != nullptr) view.merges = merges->strings;
  view.scores = scores;
  view.types = types;
  return vocab_from_gguf(view);
}

}  // namespace doppler::test
