#pragma once
// ModelConfig from the config.json of a Hugging Face folder.
#include <string>

#include "base/result.h"
#include "formats/tensor_source.h"
#include "model/config.h"

namespace doppler::model {

/// Reads DIRECTORY/config.json, and generation_config.json, modules.json and the pooling's config.json where
/// they are there. `source` holds the folder's tensors. What a file leaves out is what transformers takes for
/// its model type. Everything is checked as config_from_gguf() does; errors name the key; model types that do
/// not run are refused by name (kUnsupported).
Result<ModelConfig> config_from_hugging_face(const std::string& directory, const TensorSource& source);

}  // namespace doppler::model
