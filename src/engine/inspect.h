#pragma once
// What a model file says about itself, without running it.
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "formats/tensor_source.h"
#include "model/config.h"

namespace doppler {

struct DtypeUse {
  std::string dtype;
  uint64_t tensors = 0, bytes = 0;
};

struct InspectReport {
  std::string path, format;  // "gguf", "rdrr" or "safetensors"
  std::string version;       // of the container: "3", "1"
  std::string name;          // as the file gives it; "" if it does not
  std::string architecture;  // GGUF: general.architecture; RDRR: the manifest's model type
  std::string quantization;  // headline, RDRR only
  uint64_t parameters = 0, tensor_bytes = 0;
  std::vector<DtypeUse> dtypes;  // most bytes first
  std::vector<TensorInfo> tensors;

  std::string tokenizer;    // GGUF: "llama", "gpt2", with the pre-tokenizer's name; RDRR: its file
  uint64_t vocabulary = 0;  // tokens named by the file; 0 if unknown
  std::optional<uint64_t> bos_id, eos_id;
  std::string chat_template;  // "chatml", "gemma", "llama3", …; "other"; "" if there is none

  // RDRR only.
  uint64_t shards = 0;
  std::string hash;

  std::optional<model::ModelConfig> config;  // absent if the model does not run here
  std::string not_runnable;                  // why
};

/// Opens a .gguf file, an RDRR directory or a Hugging Face folder. A valid container of a model that does not
/// run here is no error. Errors: none of the three, or damaged.
Result<InspectReport> inspect(const std::string& path);

std::string to_json(const InspectReport& report, bool with_tensors);  // one JSON object
std::string to_text(const InspectReport& report, bool with_tensors);  // lines for people

}  // namespace doppler
