#include "engine/convert.h"

#include <algorithm>
#include <map>
#include <memory>
#include <nlohmann/json.hpp>

#include "base/text.h"
#include "engine/convert_manifest.h"
#include "engine/convert_plan.h"
#include "engine/convert_source.h"
#include "engine/convert_tensor.h"
#include "engine/convert_text.h"
#include "formats/rdrr/writer.h"

namespace doppler {
namespace {

using namespace convert_detail;

void count_types(const std::vector<PlannedTensor>& tensors, ConvertReport& report) {
  std::map<std::pair<std::string, std::string>, TypeChange> changes;
  for (const PlannedTensor& tensor : tensors) {
    const bool split = tensor.form == Form::kMxfp4Pairs || tensor.form == Form::kMxfp4Scales;
    const std::string from(dtype_name(tensor.from)), to(dtype_name(split ? tensor.from : tensor.dtype));
    TypeChange& change = changes[{from, to}];
    change.from = from;
    change.to = to;
    ++change.tensors;
    change.bytes_before += tensor.source_bytes();
    change.bytes_after += tensor.bytes();
  }
  for (auto& [key, change] : changes) report.types.push_back(std::move(change));
}

std::string listed(const std::map<std::string, uint64_t>& counts) {
  std::string list;
  for (const auto& [what, count] : counts)
    list += fmt::format("{}{} {}", list.empty() ? "" : ", ", count, what);
  return list;
}

/// Which matrices did not get the type that was asked for, and why.
void add_quant_notes(const Plan& plan, const ConvertOptions& options, ConvertReport& report) {
  if (options.quant == "keep" || options.compat) return;
  std::map<std::string, uint64_t> narrow;
  for (const PlannedTensor& tensor : plan.tensors)
    if (tensor.form == Form::kRows && tensor.dtype != tensor.asked)
      ++narrow[fmt::format("{} in place of {}", dtype_name(tensor.dtype), dtype_name(tensor.asked))];
  if (!narrow.empty())
    report.notes.push_back(
        fmt::format("Matrices whose rows are no multiple of 256 values took a type with blocks of 32: {}.",
                    listed(narrow)));
}

void add_notes(const Plan& plan, const Source& source, const ConvertOptions& options, ConvertReport& report) {
  std::map<std::string, uint64_t> unread;
  bool factors = false;
  for (const PlannedTensor& tensor : plan.tensors) {
    if (!original_reads(tensor.dtype, tensor.role, tensor.columns()))
      ++unread[std::string(dtype_name(tensor.dtype))];
    factors = factors || tensor.name.ends_with("rope_freqs.weight");
  }
  if (!unread.empty())
    report.notes.push_back(fmt::format(
        "The original engine's readers cannot use every tensor ({}): these are stored under their own type "
        "names; --compat stores them as F16.",
        listed(unread)));
  if (options.compat)
    report.notes.push_back(
        "The manifest holds no execution graph, which the original 0.5 needs to run a model: its own tool "
        "adds the one of the "
        "model's family.");
  if (factors)
    report.notes.push_back("rope_freqs.weight has no counterpart in the original engine, which ignores it.");
  if (source.gguf && source.model.config.rope_interleaved)
    report.notes.push_back(
        "Rows of the q and k projections are put into Hugging Face's order; their values are unchanged.");
  add_quant_notes(plan, options, report);
  if (!plan.left_out.empty())
    report.notes.push_back(fmt::format("{} tensors that the model does not compute with are left out ({}{}).",
                                       plan.left_out.size(), printable(plan.left_out.front()),
                                       plan.left_out.size() > 1 ? ", …" : ""));
}

/// Groups that name where each expert's bytes lie, for layers whose experts are one tensor.
void add_packed_groups(const Plan& plan, rdrr::Writer& writer) {
  if (plan.packed_layers == 0) return;
  std::map<std::string, std::vector<std::string>> names;  // of each layer's packed tensors
  for (const PlannedTensor& tensor : plan.tensors)
    if (tensor.name.find(".mlp.experts.") != std::string::npos) names[tensor.group].push_back(tensor.name);
  for (const auto& [group, tensors] : names)
    for (uint32_t e = 0; e < plan.config.experts; ++e)
      writer.add_shard_group(fmt::format("{}.expert.{}", group, e), tensors);
}

}  // namespace

Result<ConvertReport> convert(const std::string& source_path, const std::string& directory,
                              const ConvertOptions& options) {
  DOPPLER_TRY(const Source source, open_source(source_path));
  DOPPLER_TRY(const Plan plan, plan_conversion(source, options));
  const std::vector<PlannedTensor>& tensors = plan.tensors;
  const bool same_types = std::all_of(tensors.begin(), tensors.end(), [](const PlannedTensor& tensor) {
    return tensor.dtype == tensor.from || tensor.dtype == DType::kU8;
  });
  rdrr::Manifest manifest =
      source.rdrr ? rewrite_manifest(source.rdrr->manifest(), plan, same_types && !options.compat)
                  : make_manifest(plan);
  manifest.model_id = make_model_id(options.model_id.empty() ? plan.config.name : options.model_id);
  set_quantization(manifest, tensors);

  DOPPLER_TRY(const std::unique_ptr<rdrr::Writer> writer,
              rdrr::Writer::create(directory, {options.shard_size_bytes, options.hash}));
  DOPPLER_CHECK_OK(write_text_files(source, *writer, manifest));
  const bool generates = plan.config.pooling == model::Pooling::kNone;
  if (options.compat && generates && manifest.eos_ids.empty())
    return fail(ErrorCode::kUnsupported,
                "[convert] {} names no end-of-sequence token, which --compat needs; convert it without",
                source_path);

  ConvertProgress progress{options.progress, 0, 0};
  for (const PlannedTensor& tensor : tensors) progress.total += tensor.source_bytes();
  ThreadPool pool(options.threads);
  for (const PlannedTensor& tensor : tensors)
    DOPPLER_CHECK_OK(write_tensor(source.model, tensor, *writer, pool, progress));
  add_packed_groups(plan, *writer);

  ConvertReport report;
  report.directory = directory;
  report.model_id = manifest.model_id;
  report.quantization = manifest.quantization;
  report.tensors = tensors.size();
  count_types(tensors, report);
  add_notes(plan, source, options, report);
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
