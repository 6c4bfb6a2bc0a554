#pragma once
// How a sentence-transformers folder makes one vector of a text: modules.json, the pooling's config.json and
// sentence_bert_config.json.
#include <string>

#include "base/result.h"
#include "model/config.h"

namespace doppler::model {

/// Sets pooling, normalize and text_limit. A BERT that has none of these files is pooled by mean and
/// normalised; a decoder without them is no embedder. Errors name the file: damaged JSON, a pooling of
/// several kinds, a module that does not run (a dense layer after the pooling).
Result<void> read_hf_pooling(const std::string& directory, ModelConfig& config);

}  // namespace doppler::model
