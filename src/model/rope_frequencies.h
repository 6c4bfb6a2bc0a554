#pragma once
// Inverse frequencies of rotary position embedding, with the scalings long-context models use.
#include "base/result.h"
#include "formats/tensor_source.h"
#include "graph/graph.h"
#include "model/config.h"

namespace doppler::model {

/// inv_freq[i] = base^(-2i / rotary_dim), i < rotary_dim / 2. With `scaled`, divided by the config's linear
/// factor, stretched by the llama3 rule, or divided by the file's rope_freqs tensor where there is one.
/// Errors: a scaling this build does not know; a rope_freqs tensor of wrong shape, type or value.
Result<graph::RopeTable> make_rope_table(const ModelConfig& config, const TensorSource& source, float base,
                                         bool scaled);

}  // namespace doppler::model
