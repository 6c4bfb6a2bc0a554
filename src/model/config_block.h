#pragma once
// A ModelConfig as JSON text and back: what RDRR manifests of this project hold beside the original's own
// keys, which cannot say everything that a family means.
#include <string>
#include <string_view>

#include "base/result.h"
#include "model/config.h"

namespace doppler::model {

/// Member of the manifest's top level that holds the text; other readers ignore it.
inline constexpr std::string_view kConfigBlockKey = "nativeConfig";

/// Everything but sizes, names, end ids and chat template, which manifests have places for. Numbers come back
/// bit for bit.
std::string config_block(const ModelConfig& config);

/// Reads a block into a config whose sizes are set. `where` names the manifest in errors: a version or a name
/// that is unknown, a number out of range, lists that do not fit the layers.
Result<void> read_config_block(std::string_view json, const std::string& where, ModelConfig& config);

}  // namespace doppler::model
