#pragma once
// The text side of a converted model: tokenizer and chat template into files, and their description into the
// manifest.
#include "base/result.h"
#include "engine/convert_source.h"
#include "formats/rdrr/manifest.h"
#include "formats/rdrr/writer.h"

namespace doppler::convert_detail {

/// GGUF metadata becomes tokenizer.json, tokenizer_config.json and chat_template.jinja; the small files of a
/// directory are copied. End ids that the configuration does not name come from the tokenizer. Errors: no
/// tokenizer, or a damaged one.
Result<void> write_text_files(const Source& source, rdrr::Writer& writer, rdrr::Manifest& manifest);

}  // namespace doppler::convert_detail
