#include "model/model.h"

#include "formats/gguf/gguf.h"
#include "formats/rdrr/rdrr.h"
#include "formats/safetensors/safetensors.h"
#include "model/binding.h"
#include "model/config_hf.h"
#include "model/config_rdrr.h"
#include "model/families.h"

namespace doppler::model {

Result<LoadedModel> open_model(const std::string& path) {
  LoadedModel model;
  if (rdrr::is_rdrr_directory(path)) {
    DOPPLER_TRY(std::unique_ptr<rdrr::RdrrModel> directory, rdrr::RdrrModel::open(path));
    DOPPLER_TRY(model.config, config_from_rdrr(*directory));
    model.source = std::move(directory);
  } else if (safetensors::is_hugging_face_folder(path)) {
    DOPPLER_TRY(std::unique_ptr<safetensors::SafetensorsFolder> folder,
                safetensors::SafetensorsFolder::open(path));
    DOPPLER_TRY(model.config, config_from_hugging_face(path, *folder));
    model.source = std::move(folder);
  } else {
    DOPPLER_TRY(std::unique_ptr<gguf::GgufFile> file, gguf::GgufFile::open(path));
    DOPPLER_TRY(model.config, config_from_gguf(*file));
    model.source = std::move(file);
  }
  DOPPLER_TRY(model.graph, build_graph(model.config, *model.source));
  model.weights = std::make_unique<TensorWeights>(*model.source);
  return model;
}

}  // namespace doppler::model
