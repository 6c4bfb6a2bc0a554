#pragma once
// The text side of a model's files: its tokenizer and its chat template.
#include <memory>
#include <string>

#include "base/result.h"
#include "chat/chat_template.h"
#include "formats/gguf/gguf.h"
#include "tokenizer/tokenizer.h"

namespace doppler {

/// From tokenizer.ggml.*. Errors: metadata of a wrong type, no vocabulary, and what vocab_from_gguf refuses.
Result<std::unique_ptr<Tokenizer>> tokenizer_from_gguf(const gguf::GgufFile& file);

/// From tokenizer.json of a directory, or else its SentencePiece model (tokenizer.model, spiece.model), with
/// tokenizer_config.json if it is there.
Result<std::unique_ptr<Tokenizer>> tokenizer_from_directory(const std::string& directory);

/// Of an opened model: a GGUF file, or else the directory at `path`.
Result<std::unique_ptr<Tokenizer>> tokenizer_of(const TensorSource& source, const std::string& path);

/// tokenizer.chat_template.
Result<ChatTemplate> chat_template_from_gguf(const gguf::GgufFile& file);

/// The Jinja text that a directory has as chat_template.jinja or in tokenizer_config.json; empty if neither.
Result<std::string> chat_template_text(const std::string& directory);

/// "chat_template" of tokenizer_config.json or chat_template.jinja if either is there, else the format that
/// the manifest names.
Result<ChatTemplate> chat_template_from_directory(const std::string& directory,
                                                  const std::string& manifest_format);

}  // namespace doppler
