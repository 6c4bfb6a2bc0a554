#pragma once
// One straight function per kind of model, and what picks it.
#include "base/result.h"
#include "formats/tensor_source.h"
#include "graph/graph.h"
#include "model/builder.h"
#include "model/config.h"

namespace doppler::model {

void build_decoder(GraphBuilder& builder, const ModelConfig& config);
void build_encoder(GraphBuilder& builder, const ModelConfig& config);

/// The graph of a whole model. Each weight's presence, shape and type are checked against `source`; errors
/// name the tensor, what was wanted and what was got.
Result<graph::Graph> build_graph(const ModelConfig& config, const TensorSource& source);

}  // namespace doppler::model
