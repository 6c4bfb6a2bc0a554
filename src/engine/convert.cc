#include "engine/convert.h"

#include <algorithm>
#include <filesystem>
#include <map>
#include <memory>
#include <nlohmann/json.hpp>

#include "base/byte_source.h"
#include "engine/convert_manifest.h"
#include "engine/convert_plan.h"
#include "engine/convert_tensor.h"
#include "formats/gguf/gguf.h"
#include "formats/rdrr/rdrr.h"
#include "formats/rdrr/writer.h"
#include "model/config_rdrr.h"
#include "model/families.h"
#include "pipelines/text/text_files.h"

namespace doppler {
namespace {

using namespace convert_detail;

constexpr uint64_t kMaxSideFileBytes = 512u << 20;

/// An opened source, with whichever of the two kinds it is.
struct Source {
  std::unique_ptr<gguf::GgufFile> gguf;
  std::unique_ptr<rdrr::RdrrModel> rdrr;
  model::ModelConfig config;

  const TensorSource& tensors() const {
    return gguf ? static_cast<const TensorSource&>(*gguf) : static_cast<const TensorSource&>(*rdrr);
  }
};

Result<Source> open_source(const std::string& path) {
  Source source;
  std::error_code error;
  if (std::filesystem::is_directory(path, error)) {
    if (!rdrr::is_rdrr_directory(path))
      return fail(ErrorCode::kBadInput,
                  "[convert] a .gguf file or a directory with manifest.json wanted, {} has none", path);
    DOPPLER_TRY(source.rdrr, rdrr::RdrrModel::open(path));
    DOPPLER_TRY(source.config, model::config_from_rdrr(*source.rdrr));
  } else {
    DOPPLER_TRY(source.gguf, gguf::GgufFile::open(path));
    DOPPLER_TRY(source.config, model::config_from_gguf(*source.gguf));
  }
  // Building the graph checks that every weight is there, in the right shape and of a type that runs.
  DOPPLER_TRY(const graph::Graph graph, model::build_graph(source.config, source.tensors()));
  return source;
}

std::string token_text(const VocabData& vocab, const std::optional<int32_t>& id) {
  return id && *id >= 0 && static_cast<size_t>(*id) < vocab.tokens.size()
             ? vocab.tokens[static_cast<size_t>(*id)]
             : "";
}

/// tokenizer_config.json: which tokens are special, as Hugging Face keeps it beside tokenizer.json.
std::string tokenizer_config(const VocabData& vocab) {
  nlohmann::ordered_json out = {{"add_bos_token", vocab.add_bos}, {"add_eos_token", vocab.add_eos}};
  const auto add = [&](const char* key, const std::optional<int32_t>& id) {
    if (const std::string text = token_text(vocab, id); !text.empty()) out[key] = text;
  };
  add("bos_token", vocab.bos);
  add("eos_token", vocab.eos);
  add("unk_token", vocab.unk);
  add("pad_token", vocab.pad);
  return out.dump(2, ' ', false, nlohmann::ordered_json::error_handler_t::replace) + "\n";
}

std::optional<uint64_t> as_id(const std::optional<int32_t>& id) {
  return id && *id >= 0 ? std::optional<uint64_t>(static_cast<uint64_t>(*id)) : std::nullopt;
}

/// Tokenizer and chat template out of GGUF metadata into files, and their description into the manifest.
Result<void> write_text_files(const gguf::GgufFile& file, rdrr::Writer& writer, rdrr::Manifest& manifest) {
  DOPPLER_TRY(const std::unique_ptr<Tokenizer> tokenizer, tokenizer_from_gguf(file));
  const VocabData& vocab = tokenizer->vocab();
  DOPPLER_CHECK_OK(writer.add_file("tokenizer.json", to_tokenizer_json(vocab)));
  DOPPLER_CHECK_OK(writer.add_file("tokenizer_config.json", tokenizer_config(vocab)));
  rdrr::TokenizerRef& ref = manifest.tokenizer;
  ref.type = "bundled";
  ref.file = "tokenizer.json";
  ref.vocab_size = vocab.tokens.size();
  ref.bos_id = as_id(vocab.bos);
  ref.eos_id = as_id(vocab.eos);
  ref.pad_id = as_id(vocab.pad);
  ref.unk_id = as_id(vocab.unk);
  ref.add_bos = vocab.add_bos;
  ref.add_eos = vocab.add_eos;
  if (manifest.eos_ids.empty())
    for (const int32_t id : vocab.end_ids) manifest.eos_ids.push_back(static_cast<uint64_t>(id));

  DOPPLER_TRY(const auto jinja, file.get_string("tokenizer.chat_template"));
  if (jinja && !jinja->empty()) {
    DOPPLER_CHECK_OK(writer.add_file("chat_template.jinja", *jinja));
    const std::string type = chat_type_of(*jinja);
    if (!type.empty()) manifest.inference.chat_template.type = type;
    manifest.inference.chat_template.enabled = !type.empty();
  }
  return {};
}

/// The small files of an RDRR source, as they are.
Result<void> copy_text_files(const rdrr::RdrrModel& source, rdrr::Writer& writer) {
  std::vector<std::string> names = {"tokenizer_config.json", "generation_config.json", "chat_template.jinja"};
  if (!source.manifest().tokenizer.file.empty()) names.push_back(source.manifest().tokenizer.file);
  for (const std::string& name : names) {
    const std::string path = source.path() + "/" + name;
    std::error_code error;
    if (!std::filesystem::exists(path, error)) continue;
    DOPPLER_TRY(const std::string text, read_text_file(path, kMaxSideFileBytes));
    DOPPLER_CHECK_OK(writer.add_file(name, text));
  }
  return {};
}

void count_types(const std::vector<PlannedTensor>& tensors, ConvertReport& report) {
  std::map<std::pair<std::string, std::string>, TypeChange> changes;
  for (const PlannedTensor& tensor : tensors) {
    const std::string from(dtype_name(tensor.source->dtype)), to(dtype_name(tensor.dtype));
    TypeChange& change = changes[{from, to}];
    change.from = from;
    change.to = to;
    ++change.tensors;
    change.bytes_before += tensor.source->size_bytes;
    change.bytes_after += tensor.source->rows() * row_bytes(tensor.dtype, tensor.source->columns());
  }
  for (auto& [key, change] : changes) report.types.push_back(std::move(change));
}

void add_notes(const std::vector<PlannedTensor>& tensors, const Source& source, const ConvertOptions& options,
               ConvertReport& report) {
  std::map<std::string, uint64_t> unread;
  uint64_t factors = 0;
  for (const PlannedTensor& tensor : tensors) {
    if (!original_reads(tensor.dtype, tensor.role, tensor.source->columns()))
      ++unread[std::string(dtype_name(tensor.dtype))];
    if (tensor.name == "rope_freqs.weight") ++factors;
  }
  std::string list;
  for (const auto& [dtype, count] : unread)
    list += fmt::format("{}{} {}", list.empty() ? "" : ", ", count, dtype);
  if (!list.empty())
    report.notes.push_back(fmt::format(
        "The original engine's readers cannot use every tensor ({}): these are stored under their own type "
        "names; --compat stores them as F16.",
        list));
  if (options.compat)
    report.notes.push_back(
        "The manifest holds no execution graph, which the original 0.5 needs to run a model: its own tool "
        "adds the one of the "
        "model's family.");
  if (factors != 0)
    report.notes.push_back("rope_freqs.weight has no counterpart in the original engine, which ignores it.");
  if (source.gguf && source.config.rope_interleaved)
    report.notes.push_back(
        "Rows of the q and k projections are put into Hugging Face's order; their values are unchanged.");
}

}  // namespace

Result<ConvertReport> convert(const std::string& source_path, const std::string& directory,
                              const ConvertOptions& options) {
  DOPPLER_TRY(const Source source, open_source(source_path));
  const rdrr::Manifest* old_manifest = source.rdrr ? &source.rdrr->manifest() : nullptr;
  DOPPLER_TRY(const std::vector<PlannedTensor> tensors,
              plan_tensors(source.tensors(), source.config, old_manifest, options));
  const bool same_types = std::all_of(tensors.begin(), tensors.end(), [](const PlannedTensor& tensor) {
    return tensor.dtype == tensor.source->dtype;
  });
  rdrr::Manifest manifest =
      old_manifest ? rewrite_manifest(*old_manifest, source.config, same_types && !options.compat)
                   : make_manifest(source.config);
  manifest.model_id = make_model_id(options.model_id.empty() ? source.config.name : options.model_id);
  set_quantization(manifest, tensors);

  DOPPLER_TRY(const std::unique_ptr<rdrr::Writer> writer,
              rdrr::Writer::create(directory, {options.shard_size_bytes, options.hash}));
  if (source.gguf) {
    DOPPLER_CHECK_OK(write_text_files(*source.gguf, *writer, manifest));
    manifest.extra.emplace_back("metadata", R"({"source":"gguf","hasTokenizer":true})");
  } else {
    DOPPLER_CHECK_OK(copy_text_files(*source.rdrr, *writer));
  }
  if (options.compat && manifest.eos_ids.empty())
    return fail(ErrorCode::kUnsupported,
                "[convert] {} names no end-of-sequence token, which --compat needs; convert it without",
                source_path);

  ConvertProgress progress{options.progress, 0, 0};
  for (const PlannedTensor& tensor : tensors) progress.total += tensor.source->size_bytes;
  ThreadPool pool(options.threads);
  for (const PlannedTensor& tensor : tensors)
    DOPPLER_CHECK_OK(write_tensor(source.tensors(), tensor, *writer, pool, progress));

  ConvertReport report;
  report.directory = directory;
  report.model_id = manifest.model_id;
  report.quantization = manifest.quantization;
  report.tensors = tensors.size();
  count_types(tensors, report);
  add_notes(tensors, source, options, report);
  DOPPLER_CHECK_OK(writer->finish(std::move(manifest)));
  report.bytes = writer->bytes_written();
  report.shards = writer->shard_count();
  return report;
}

std::string to_json(const ConvertReport& report) {
  nlohmann::ordered_json types = nlohmann::ordered_json::array();
  for (const TypeChange& change : report.types)
    types.push_back({{"from", change.from},
                     {"to", change.to},
                     {"tensors", change.tensors},
                     {"bytes_before", change.bytes_before},
                     {"bytes_after", change.bytes_after}});
  const nlohmann::ordered_json out = {{"directory", report.directory},
                                      {"model_id", report.model_id},
                                      {"quantization", report.quantization},
                                      {"tensors", report.tensors},
                                      {"shards", report.shards},
                                      {"bytes", report.bytes},
                                      {"types", types},
                                      {"notes", report.notes}};
  return out.dump(-1, ' ', false, nlohmann::ordered_json::error_handler_t::replace);
}

std::string to_text(const ConvertReport& report) {
  std::string out = fmt::format("{}: {} tensors, {:.1f} MB in {} shards\n", report.directory, report.tensors,
                                static_cast<double>(report.bytes) / 1e6, report.shards);
  for (const TypeChange& change : report.types)
    out += change.from == change.to
               ? fmt::format("  {:<5} kept          {:>4} tensors {:>10.1f} MB\n", change.from,
                             change.tensors, static_cast<double>(change.bytes_after) / 1e6)
               : fmt::format("  {:<5} to {:<10} {:>4} tensors {:>10.1f} MB, was {:.1f}\n", change.from,
                             change.to, change.tensors, static_cast<double>(change.bytes_after) / 1e6,
                             static_cast<double>(change.bytes_before) / 1e6);
  for (const std::string& note : report.notes) out += note + "\n";
  return out;
}

}  // namespace doppler
