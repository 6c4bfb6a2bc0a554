#include "engine/convert_text.h"

#include <filesystem>
#include <memory>
#include <nlohmann/json.hpp>

#include "base/byte_source.h"
#include "engine/convert_manifest.h"
#include "pipelines/text/text_files.h"

namespace doppler::convert_detail {
namespace {

constexpr uint64_t kMaxSideFileBytes = 512u << 20;

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

void describe(const VocabData& vocab, rdrr::Manifest& manifest) {
  rdrr::TokenizerRef& ref = manifest.tokenizer;
  ref.vocab_size = vocab.tokens.size();
  ref.bos_id = as_id(vocab.bos);
  ref.eos_id = as_id(vocab.eos);
  ref.pad_id = as_id(vocab.pad);
  ref.unk_id = as_id(vocab.unk);
  ref.add_bos = vocab.add_bos;
  ref.add_eos = vocab.add_eos;
  if (manifest.eos_ids.empty())
    for (const int32_t id : vocab.end_ids) manifest.eos_ids.push_back(static_cast<uint64_t>(id));
}

void describe_template(const std::string& jinja, rdrr::Manifest& manifest) {
  const std::string type = chat_type_of(jinja);
  if (!type.empty()) manifest.inference.chat_template.type = type;
  manifest.inference.chat_template.enabled = !type.empty();
}

Result<void> from_gguf(const gguf::GgufFile& file, rdrr::Writer& writer, rdrr::Manifest& manifest) {
  DOPPLER_TRY(const std::unique_ptr<Tokenizer> tokenizer, tokenizer_from_gguf(file));
  const VocabData& vocab = tokenizer->vocab();
  DOPPLER_CHECK_OK(writer.add_file("tokenizer.json", to_tokenizer_json(vocab)));
  DOPPLER_CHECK_OK(writer.add_file("tokenizer_config.json", tokenizer_config(vocab)));
  manifest.tokenizer.type = "bundled";
  manifest.tokenizer.file = "tokenizer.json";
  describe(vocab, manifest);
  DOPPLER_TRY(const auto jinja, file.get_string("tokenizer.chat_template"));
  if (!jinja || jinja->empty()) return {};
  describe_template(std::string(*jinja), manifest);
  return writer.add_file("chat_template.jinja", *jinja);
}

/// Copies a file of `directory` if it is there; its text, empty if not.
Result<std::string> copy_file(const std::string& directory, const std::string& name, rdrr::Writer& writer) {
  const std::string path = (std::filesystem::path(directory) / name).string();
  std::error_code error;
  if (!std::filesystem::exists(path, error)) return std::string();
  DOPPLER_TRY(std::string text, read_text_file(path, kMaxSideFileBytes));
  DOPPLER_CHECK_OK(writer.add_file(name, text));
  return text;
}

Result<void> from_folder(const std::string& directory, rdrr::Writer& writer, rdrr::Manifest& manifest) {
  DOPPLER_TRY(const std::unique_ptr<Tokenizer> tokenizer, tokenizer_from_directory(directory));
  describe(tokenizer->vocab(), manifest);
  for (const char* name : {"tokenizer.json", "tokenizer.model", "spiece.model"}) {
    DOPPLER_TRY(const std::string text, copy_file(directory, name, writer));
    if (text.empty() || !manifest.tokenizer.file.empty()) continue;
    manifest.tokenizer.file = name;
    manifest.tokenizer.type = manifest.tokenizer.file == "tokenizer.json" ? "bundled" : "sentencepiece";
  }
  for (const char* name : {"tokenizer_config.json", "generation_config.json", "chat_template.jinja"}) {
    DOPPLER_TRY(const std::string text, copy_file(directory, name, writer));
  }
  DOPPLER_TRY(const std::string jinja, chat_template_text(directory));
  if (!jinja.empty()) describe_template(jinja, manifest);
  return {};
}

/// The small files of an RDRR source, as they are.
Result<void> from_rdrr(const rdrr::RdrrModel& source, rdrr::Writer& writer) {
  std::vector<std::string> names = {"tokenizer_config.json", "generation_config.json", "chat_template.jinja"};
  if (!source.manifest().tokenizer.file.empty()) names.push_back(source.manifest().tokenizer.file);
  for (const std::string& name : names) {
    DOPPLER_TRY(const std::string text, copy_file(source.path(), name, writer));
  }
  return {};
}

}  // namespace

Result<void> write_text_files(const Source& source, rdrr::Writer& writer, rdrr::Manifest& manifest) {
  if (source.rdrr) return from_rdrr(*source.rdrr, writer);
  const char* const kind = source.gguf ? "gguf" : "safetensors";
  manifest.extra.emplace_back("metadata", fmt::format(R"({{"source":"{}","hasTokenizer":true}})", kind));
  return source.gguf ? from_gguf(*source.gguf, writer, manifest) : from_folder(source.path, writer, manifest);
}

}  // namespace doppler::convert_detail
