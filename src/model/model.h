#pragma once
// A model file opened for running: its config, its tensors and its graph.
#include <memory>
#include <string>

#include "base/result.h"
#include "formats/tensor_source.h"
#include "graph/graph.h"
#include "graph/weights.h"
#include "model/config.h"

namespace doppler::model {

struct LoadedModel {
  ModelConfig config;
  std::unique_ptr<TensorSource> source;          // a GgufFile, an RdrrModel or a SafetensorsFolder
  std::unique_ptr<graph::WeightSource> weights;  // views of `source`
  graph::Graph graph;
};

/// Opens a .gguf file, an RDRR directory (one that holds manifest.json) or a Hugging Face folder (one that
/// holds config.json and safetensors files), reads its config and builds its graph. No weights are read.
/// Errors: not a model, damaged, or of a family that does not run.
Result<LoadedModel> open_model(const std::string& path);

}  // namespace doppler::model
