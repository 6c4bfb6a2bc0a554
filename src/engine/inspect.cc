#include "engine/inspect.h"

#include <algorithm>
#include <filesystem>
#include <map>

#include "base/text.h"
#include "engine/convert_manifest.h"
#include "formats/gguf/gguf.h"
#include "formats/rdrr/rdrr.h"
#include "formats/safetensors/safetensors.h"
#include "model/config_hf.h"
#include "model/config_rdrr.h"
#include "model/families.h"
#include "pipelines/text/text_files.h"

namespace doppler {
namespace {

std::string chat_type(std::string_view jinja) {
  if (jinja.empty()) return "";
  const std::string type = convert_detail::chat_type_of(jinja);
  return type.empty() ? "other" : type;
}

void add_tensors(const TensorSource& source, InspectReport& report) {
  std::map<DType, DtypeUse> uses;
  for (const TensorInfo& tensor : source.tensors()) {
    DtypeUse& use = uses[tensor.dtype];
    use.dtype = dtype_name(tensor.dtype);
    ++use.tensors;
    use.bytes += tensor.size_bytes;
    report.parameters += tensor.element_count();
    report.tensor_bytes += tensor.size_bytes;
    report.tensors.push_back(tensor);
  }
  for (auto& [dtype, use] : uses) report.dtypes.push_back(std::move(use));
  std::sort(report.dtypes.begin(), report.dtypes.end(), [](const DtypeUse& a, const DtypeUse& b) {
    return a.bytes != b.bytes ? a.bytes > b.bytes : a.dtype < b.dtype;
  });
}

/// A configuration counts only if the whole graph can be built with it.
void add_config(Result<model::ModelConfig> config, const TensorSource& source, InspectReport& report) {
  if (config) {
    const Result<graph::Graph> graph = model::build_graph(*config, source);
    if (graph)
      report.config = std::move(*config);
    else
      report.not_runnable = graph.error().message;
  } else {
    report.not_runnable = config.error().message;
  }
}

Result<InspectReport> inspect_gguf(const std::string& path) {
  DOPPLER_TRY(const std::unique_ptr<gguf::GgufFile> file, gguf::GgufFile::open(path));
  InspectReport report;
  report.path = path;
  report.format = "gguf";
  report.version = std::to_string(file->version());
  const auto text = [&](std::string_view key) -> std::string {
    const auto value = file->get_string(key);
    return value && *value ? std::string(**value) : "";
  };
  const auto id = [&](std::string_view key) -> std::optional<uint64_t> {
    const auto value = file->get_uint(key);
    return value ? *value : std::nullopt;
  };
  report.name = text("general.name");
  report.architecture = text("general.architecture");
  report.tokenizer = text("tokenizer.ggml.model");
  if (const std::string pre = text("tokenizer.ggml.pre"); !pre.empty()) report.tokenizer += " (" + pre + ")";
  const auto tokens = file->get_array("tokenizer.ggml.tokens", gguf::ValueType::kString);
  if (tokens && *tokens) report.vocabulary = (*tokens)->count;
  report.bos_id = id("tokenizer.ggml.bos_token_id");
  report.eos_id = id("tokenizer.ggml.eos_token_id");
  report.chat_template = chat_type(text("tokenizer.chat_template"));
  add_tensors(*file, report);
  add_config(model::config_from_gguf(*file), *file, report);
  return report;
}

Result<InspectReport> inspect_rdrr(const std::string& path) {
  DOPPLER_TRY(const std::unique_ptr<rdrr::RdrrModel> model, rdrr::RdrrModel::open(path));
  const rdrr::Manifest& manifest = model->manifest();
  InspectReport report;
  report.path = path;
  report.format = "rdrr";
  report.version = fmt::format("{}", manifest.version);
  report.name = manifest.model_id;
  report.architecture = manifest.model_type;
  report.quantization = manifest.quantization;
  report.tokenizer = manifest.tokenizer.file;
  if (manifest.architecture) report.vocabulary = manifest.architecture->vocab;
  report.bos_id = manifest.tokenizer.bos_id;
  if (!manifest.eos_ids.empty()) report.eos_id = manifest.eos_ids.front();
  DOPPLER_TRY(const std::string jinja, model->chat_template());
  report.chat_template =
      jinja.empty() ? manifest.inference.chat_template.type.value_or("") : chat_type(jinja);
  report.shards = manifest.shards.size();
  report.hash = hash_name(manifest.hash);
  add_tensors(*model, report);
  add_config(model::config_from_rdrr(*model), *model, report);
  return report;
}

Result<InspectReport> inspect_folder(const std::string& path) {
  DOPPLER_TRY(const auto folder, safetensors::SafetensorsFolder::open(path));
  InspectReport report;
  report.path = path;
  report.format = "safetensors";
  report.version = fmt::format("{} files", folder->file_count());
  add_tensors(*folder, report);
  add_config(model::config_from_hugging_face(path, *folder), *folder, report);
  if (report.config) {
    report.name = report.config->name;
    report.architecture = model::family_name(report.config->family);
  }
  // A folder without a tokenizer, or with one that does not load, is inspected all the same.
  if (const auto tokenizer = tokenizer_from_directory(path)) {
    std::error_code error;
    const bool json = std::filesystem::exists(std::filesystem::path(path) / "tokenizer.json", error);
    report.tokenizer = json ? "tokenizer.json" : "SentencePiece";
    report.vocabulary = (*tokenizer)->vocab().tokens.size();
    if ((*tokenizer)->bos()) report.bos_id = static_cast<uint64_t>(*(*tokenizer)->bos());
    if ((*tokenizer)->eos()) report.eos_id = static_cast<uint64_t>(*(*tokenizer)->eos());
  }
  DOPPLER_TRY(const std::string jinja, chat_template_text(path));
  report.chat_template = chat_type(jinja);
  return report;
}

}  // namespace

Result<InspectReport> inspect(const std::string& path) {
  std::error_code error;
  if (!std::filesystem::is_directory(path, error)) return inspect_gguf(path);
  if (rdrr::is_rdrr_directory(path)) return inspect_rdrr(path);
  if (safetensors::is_hugging_face_folder(path)) return inspect_folder(path);
  return fail(ErrorCode::kBadInput,
              "[inspect] a .gguf file, a directory with manifest.json or a folder with config.json and "
              "safetensors files wanted, {} has neither",
              path);
}

}  // namespace doppler
