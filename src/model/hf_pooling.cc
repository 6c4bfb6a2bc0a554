#include "model/hf_pooling.h"

#include <algorithm>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <optional>

#include "base/byte_source.h"
#include "base/text.h"
#include "model/hf_keys.h"

namespace doppler::model {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::json;

constexpr uint64_t kMaxModulesBytes = 1u << 20;

bool is_there(const fs::path& path) {
  std::error_code error;
  return fs::exists(path, error);
}

// What modules.json lists after the transformer.
struct Modules {
  std::string pooling;  // its folder; "": none
  bool normalize = false;
};

// A folder's own name: nothing that leads out of the model's.
bool is_inside(const std::string& path) {
  const fs::path p(path);
  return !p.is_absolute() &&
         std::none_of(p.begin(), p.end(), [](const fs::path& part) { return part == ".."; });
}

Result<Modules> read_modules(const std::string& path) {
  DOPPLER_TRY(const std::string text, read_text_file(path, kMaxModulesBytes));
  const Json json = Json::parse(text, nullptr, false);
  if (!json.is_array()) return fail(ErrorCode::kBadFile, "[model] {}: a list of modules wanted", path);
  Modules modules;
  for (const Json& module : json) {
    if (!module.is_object() || !module.contains("type") || !module["type"].is_string() ||
        !module.contains("path") || !module["path"].is_string())
      return fail(ErrorCode::kBadFile, "[model] {}: modules with type and path wanted", path);
    const auto& type = module["type"].get_ref<const std::string&>();
    const std::string name = type.substr(type.rfind('.') + 1);  // npos + 1 is 0
    if (name == "Transformer") continue;
    if (name == "Normalize") {
      modules.normalize = true;
    } else if (name == "Pooling" && modules.pooling.empty()) {
      modules.pooling = module["path"].get<std::string>();
      if (modules.pooling.empty() || !is_inside(modules.pooling))
        return fail(ErrorCode::kBadFile,
                    "[model] {}: a folder of this model wanted for its pooling, got \"{}\"", path,
                    printable(modules.pooling));
    } else {
      return fail(ErrorCode::kUnsupported,
                  "[model] {}: a transformer, its pooling and a normalisation wanted, got {}", path,
                  printable(type));
    }
  }
  return modules;
}

Result<Pooling> read_kind(const std::string& path) {
  DOPPLER_TRY(const HfKeys keys, HfKeys::read(path));
  struct Mode {
    const char *flag, *name;
    Pooling pooling;
  };
  // kNone: ways of pooling that do not run.
  constexpr Mode kModes[] = {{"pooling_mode_mean_tokens", "mean", Pooling::kMean},
                             {"pooling_mode_cls_token", "cls", Pooling::kFirst},
                             {"pooling_mode_lasttoken", "lasttoken", Pooling::kLast},
                             {"pooling_mode_max_tokens", "max", Pooling::kNone},
                             {"pooling_mode_mean_sqrt_len_tokens", "mean_sqrt_len_tokens", Pooling::kNone},
                             {"pooling_mode_weightedmean_tokens", "weightedmean", Pooling::kNone}};
  DOPPLER_TRY(const std::string named, keys.text("pooling_mode"));  // files of sentence-transformers 5
  int count = 0;
  Pooling pooling = Pooling::kNone;
  for (const Mode& mode : kModes) {
    DOPPLER_TRY(const bool set, keys.flag(mode.flag, false));
    if (!set && named != mode.name) continue;
    ++count;
    pooling = mode.pooling;
  }
  if (count == 1 && pooling != Pooling::kNone) return pooling;
  return fail(ErrorCode::kUnsupported, "[model] {}: pooling by mean, first or last token alone wanted", path);
}

}  // namespace

Result<void> read_hf_pooling(const std::string& directory, ModelConfig& c) {
  const fs::path folder(directory);
  const bool bert = c.family == Family::kBert;
  Modules modules;
  if (const fs::path list = folder / "modules.json"; is_there(list)) {
    DOPPLER_TRY(modules, read_modules(list.string()));
  } else {
    modules.normalize = bert || is_there(folder / "2_Normalize");
    if (is_there(folder / "1_Pooling" / "config.json")) modules.pooling = "1_Pooling";
  }
  c.normalize = modules.normalize;
  c.pooling = bert ? Pooling::kMean : Pooling::kNone;
  if (!modules.pooling.empty()) {
    DOPPLER_TRY(c.pooling, read_kind((folder / modules.pooling / "config.json").string()));
  }
  if (c.pooling == Pooling::kNone) c.normalize = false;
  const fs::path limits = folder / "sentence_bert_config.json";
  if (c.pooling == Pooling::kNone || !is_there(limits)) return {};
  DOPPLER_TRY(const HfKeys keys, HfKeys::read(limits.string()));
  DOPPLER_TRY(const bool lower, keys.flag("do_lower_case", false));
  if (lower)
    return fail(
        ErrorCode::kUnsupported,
        "[model] {}: do_lower_case false wanted, since the tokenizer lowers letters where a model wants it",
        limits.string());
  DOPPLER_TRY(const std::optional<uint32_t> limit, keys.find_count("max_seq_length", 1, UINT32_MAX));
  c.text_limit = std::min(limit.value_or(c.max_context), c.max_context);
  return {};
}

}  // namespace doppler::model
