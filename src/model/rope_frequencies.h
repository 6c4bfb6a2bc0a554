#pragma once
// Inverse frequencies of rotary position embedding, with the scalings long-context models use.
#include "base/result.h"
#include "formats/tensor_source.h"
#include "graph/graph.h"
#include "model/config.h"

namespace doppler::model {

/// inv_freq[i] = base^(-2i / rotary_dim), i < rotary_dim / 2. With `scaled`, by the config's scaling: divided
/// by the linear factor, stretched by the rules of llama3 or YaRN, divided by LongRoPE's factors (of the
/// config or of the file's rope_factors_* tensors) or by the file's rope_freqs tensor where there is one.
/// Errors: a scaling this build does not know or with numbers that make no sense; factors of wrong count,
/// type or value.
Result<graph::RopeTable> make_rope_table(const ModelConfig& config, const TensorSource& source, float base,
                                         bool scaled);

}  // namespace doppler::model
