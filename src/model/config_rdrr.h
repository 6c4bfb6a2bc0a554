#pragma once
// ModelConfig from the manifest of an RDRR directory.
#include "base/result.h"
#include "formats/rdrr/rdrr.h"
#include "model/config.h"

namespace doppler::model {

/// Reads both generations of manifests. Weights may go by Hugging Face names, with or without the prefix
/// "language_model.", or by GGUF names. Everything is checked as config_from_gguf() does. Errors name the
/// manifest's key; families that do not run are refused by name (kUnsupported).
Result<ModelConfig> config_from_rdrr(const rdrr::RdrrModel& model);

}  // namespace doppler::model
