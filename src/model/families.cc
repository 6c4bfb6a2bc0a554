#include "model/families.h"

namespace doppler::model {

Result<graph::Graph> build_graph(const ModelConfig& config, const TensorSource& source) {
  GraphBuilder builder(config, source);
  if (config.family == Family::kBert)
    build_encoder(builder, config);
  else
    build_decoder(builder, config);
  return builder.finish();
}

}  // namespace doppler::model
