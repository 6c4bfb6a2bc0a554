#include <fmt/ranges.h>

#include <nlohmann/json.hpp>

#include "base/text.h"
#include "engine/inspect.h"

namespace doppler {
namespace {

using Json = nlohmann::ordered_json;

template <class T>
Json or_null(const std::optional<T>& value) {
  return value ? Json(*value) : Json(nullptr);
}

Json text_or_null(const std::string& text) { return text.empty() ? Json(nullptr) : Json(text); }

Json config_json(const model::ModelConfig& c) {
  size_t sliding = 0;
  for (const bool slides : c.sliding) sliding += slides;
  return {{"family", model::family_name(c.family)},
          {"layers", c.layers},
          {"hidden", c.hidden},
          {"ffn", c.ffn},
          {"heads", c.heads},
          {"kv_heads", c.kv_heads},
          {"head_dim", c.head_dim},
          {"vocab", c.vocab},
          {"max_context", c.max_context},
          {"rope_base", c.rope_base},
          {"window", c.window},
          {"sliding_layers", sliding},
          {"tied_head", c.tied_head},
          {"end_ids", c.end_ids},
          {"experts", c.experts},
          {"embedder", c.pooling != model::Pooling::kNone}};
}

double megabytes(uint64_t bytes) { return static_cast<double>(bytes) / 1e6; }

void add_line(std::string& out, std::string_view label, const std::string& text) {
  if (!text.empty()) out += fmt::format("{:<14}{}\n", label, text);
}

}  // namespace

std::string to_json(const InspectReport& report, bool with_tensors) {
  Json dtypes = Json::array();
  for (const DtypeUse& use : report.dtypes)
    dtypes.push_back({{"dtype", use.dtype}, {"tensors", use.tensors}, {"bytes", use.bytes}});
  Json out = {{"path", report.path},
              {"format", report.format},
              {"version", report.version},
              {"name", text_or_null(report.name)},
              {"architecture", text_or_null(report.architecture)},
              {"quantization", text_or_null(report.quantization)},
              {"parameters", report.parameters},
              {"tensor_count", report.tensors.size()},
              {"tensor_bytes", report.tensor_bytes},
              {"dtypes", std::move(dtypes)},
              {"tokenizer",
               {{"kind", text_or_null(report.tokenizer)},
                {"tokens", report.vocabulary},
                {"bos_id", or_null(report.bos_id)},
                {"eos_id", or_null(report.eos_id)}}},
              {"chat_template", text_or_null(report.chat_template)}};
  if (report.format == "rdrr") {
    out["shards"] = report.shards;
    out["hash"] = report.hash;
  }
  out["runs"] = report.config.has_value();
  if (report.config)
    out["config"] = config_json(*report.config);
  else
    out["not_runnable"] = report.not_runnable;
  if (with_tensors) {
    Json tensors = Json::array();
    for (const TensorInfo& tensor : report.tensors)
      tensors.push_back({{"name", tensor.name},
                         {"dtype", dtype_name(tensor.dtype)},
                         {"shape", tensor.shape},
                         {"bytes", tensor.size_bytes}});
    out["tensors"] = std::move(tensors);
  }
  return out.dump(-1, ' ', false, Json::error_handler_t::replace);
}

std::string to_text(const InspectReport& report, bool with_tensors) {
  std::string out;
  add_line(out, "path", report.path);
  add_line(out, "format",
           fmt::format("{} {}",
                       report.format == "gguf"   ? "GGUF"
                       : report.format == "rdrr" ? "RDRR"
                                                 : "safetensors,",
                       report.version));
  add_line(out, "name", printable(report.name));
  add_line(out, "architecture", printable(report.architecture));
  add_line(out, "quantization", printable(report.quantization));
  add_line(out, "tensors",
           fmt::format("{} with {:.1f} million values in {:.1f} MB", report.tensors.size(),
                       static_cast<double>(report.parameters) / 1e6, megabytes(report.tensor_bytes)));
  for (const DtypeUse& use : report.dtypes)
    out += fmt::format("{:<14}{:<6}{:>5} tensors {:>10.1f} MB\n", "", use.dtype, use.tensors,
                       megabytes(use.bytes));
  if (report.format == "rdrr") add_line(out, "shards", fmt::format("{} ({})", report.shards, report.hash));
  add_line(out, "tokenizer",
           report.tokenizer.empty()
               ? "none"
               : fmt::format("{}, {} tokens", printable(report.tokenizer), report.vocabulary));
  add_line(out, "template", report.chat_template.empty() ? "none" : printable(report.chat_template));
  if (report.config) {
    const model::ModelConfig& c = *report.config;
    add_line(out, "family", std::string(model::family_name(c.family)));
    add_line(out, "layers", fmt::format("{} of width {}, feed-forward {}", c.layers, c.hidden, c.ffn));
    add_line(out, "attention",
             fmt::format("{} heads of {}, {} key-value heads{}", c.heads, c.head_dim, c.kv_heads,
                         c.window ? fmt::format(", window {}", c.window) : ""));
    add_line(out, "context", fmt::format("{} positions, vocabulary {}", c.max_context, c.vocab));
    add_line(out, "end ids", fmt::format("{}", fmt::join(c.end_ids, ", ")));
  } else {
    add_line(out, "does not run", report.not_runnable);
  }
  if (with_tensors)
    for (const TensorInfo& tensor : report.tensors)
      out += fmt::format("  {:<6} {:>12} bytes  [{}]  {}\n", dtype_name(tensor.dtype), tensor.size_bytes,
                         fmt::join(tensor.shape, ", "), printable(tensor.name, 200));
  return out;
}

}  // namespace doppler
