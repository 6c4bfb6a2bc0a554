#pragma once
// The rotary part of a config.json: `rope_parameters` (transformers 5) or `rope_theta` and `rope_scaling`.
#include "base/result.h"
#include "model/config.h"
#include "model/hf_keys.h"

namespace doppler::model {

/// Sets rotary_dim, rope_base, rope_base_local and rope_scaling; `default_base` where the file names none.
Result<void> read_hf_rope(const HfKeys& keys, float default_base, ModelConfig& config);

}  // namespace doppler::model
