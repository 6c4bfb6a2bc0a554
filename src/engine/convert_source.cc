#include "engine/convert_source.h"

#include <filesystem>

#include "formats/safetensors/safetensors.h"

namespace doppler::convert_detail {

Result<Source> open_source(const std::string& path) {
  std::error_code error;
  if (std::filesystem::is_directory(path, error) && !rdrr::is_rdrr_directory(path) &&
      !safetensors::is_hugging_face_folder(path))
    return fail(ErrorCode::kBadInput,
                "[convert] a .gguf file, a directory with manifest.json or a folder with config.json and "
                "safetensors files wanted, {} has neither",
                path);
  Source source;
  source.path = path;
  DOPPLER_TRY(source.model, model::open_model(path));
  source.gguf = dynamic_cast<const gguf::GgufFile*>(source.model.source.get());
  source.rdrr = dynamic_cast<const rdrr::RdrrModel*>(source.model.source.get());
  return source;
}

}  // namespace doppler::convert_detail
