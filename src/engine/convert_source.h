#pragma once
// What a conversion reads: any model that opens, with the kind of its files.
#include <memory>
#include <string>

#include "base/result.h"
#include "formats/gguf/gguf.h"
#include "formats/rdrr/rdrr.h"
#include "model/model.h"

namespace doppler::convert_detail {

struct Source {
  std::string path;
  model::LoadedModel model;
  // One of the two, or neither for a Hugging Face folder.
  const gguf::GgufFile* gguf = nullptr;
  const rdrr::RdrrModel* rdrr = nullptr;

  const rdrr::Manifest* manifest() const { return rdrr ? &rdrr->manifest() : nullptr; }
};

/// Opens a .gguf file, an RDRR directory or a Hugging Face folder. Its graph is built, which checks that
/// every weight is there, in the right shape and of a type that runs. Errors: no model, damaged, or one that
/// does not run.
Result<Source> open_source(const std::string& path);

}  // namespace doppler::convert_detail
