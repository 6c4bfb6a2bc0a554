#include "model/families.h"

namespace doppler::model {

std::string_view family_name(Family family) {
  switch (family) {
    case Family::kLlama:
      return "llama";
    case Family::kGemma3:
      return "gemma3";
  }
  return "?";
}

Result<graph::Graph> build_graph(const ModelConfig& config, const TensorSource& source) {
  GraphBuilder builder(config, source);
  switch (config.family) {
    case Family::kLlama:
      build_llama(builder, config);
      break;
    case Family::kGemma3:
      build_gemma3(builder, config);
      break;
  }
  return builder.finish();
}

}  // namespace doppler::model
