#include "pipelines/text/text_files.h"

#include <filesystem>
#include <nlohmann/json.hpp>
#include <vector>

#include "base/byte_source.h"

namespace doppler {
namespace {

using Json = nlohmann::json;

// Vocabularies of 262,144 tokens take 20 to 40 MB as tokenizer.json.
constexpr uint64_t kMaxTokenizerBytes = 512u << 20;
constexpr uint64_t kMaxConfigBytes = 16u << 20;

std::string file_in(const std::string& directory, std::string_view name) {
  return (std::filesystem::path(directory) / name).string();
}

bool exists(const std::string& path) {
  std::error_code error;
  return std::filesystem::exists(path, error);
}

/// The text of an optional file; empty if it is not there.
Result<std::string> optional_file(const std::string& path) {
  if (!exists(path)) return std::string();
  return read_text_file(path, kMaxConfigBytes);
}

Result<std::optional<int64_t>> token_id(const gguf::GgufFile& file, std::string_view key) {
  DOPPLER_TRY(const std::optional<uint64_t> id, file.get_uint(key));
  if (!id) return std::nullopt;
  if (*id > INT32_MAX)
    return fail(ErrorCode::kBadFile, "[tokenizer] {} must be a token id, got {}; the file is damaged", key,
                *id);
  return static_cast<int64_t>(*id);
}

}  // namespace

Result<std::unique_ptr<Tokenizer>> tokenizer_from_gguf(const gguf::GgufFile& file) {
  GgufVocabView view;
  DOPPLER_TRY(const auto kind, file.get_string("tokenizer.ggml.model"));
  if (!kind)
    return fail(ErrorCode::kBadFile,
                "[tokenizer] {} holds no vocabulary (no tokenizer.ggml.model); use --prompt-ids",
                file.path());
  view.model = *kind;
  DOPPLER_TRY(const auto pre, file.get_string("tokenizer.ggml.pre"));
  view.pre = pre.value_or("");
  DOPPLER_TRY(const gguf::Array* tokens, file.get_array("tokenizer.ggml.tokens", gguf::ValueType::kString));
  if (tokens) view.tokens = tokens->strings;
  DOPPLER_TRY(const gguf::Array* merges, file.get_array("tokenizer.ggml.merges", gguf::ValueType::kString));
  if (merges) view.merges = merges->strings;
  DOPPLER_TRY(const std::vector<float> scores, file.get_floats("tokenizer.ggml.scores"));
  view.scores = scores;
  DOPPLER_TRY(const std::vector<int64_t> types, file.get_ints("tokenizer.ggml.token_type"));
  view.types = types;
  DOPPLER_TRY(view.bos, token_id(file, "tokenizer.ggml.bos_token_id"));
  DOPPLER_TRY(view.eos, token_id(file, "tokenizer.ggml.eos_token_id"));
  DOPPLER_TRY(view.eot, token_id(file, "tokenizer.ggml.eot_token_id"));
  DOPPLER_TRY(view.eom, token_id(file, "tokenizer.ggml.eom_token_id"));
  DOPPLER_TRY(view.unk, token_id(file, "tokenizer.ggml.unknown_token_id"));
  DOPPLER_TRY(view.pad, token_id(file, "tokenizer.ggml.padding_token_id"));
  DOPPLER_TRY(view.cls, token_id(file, "tokenizer.ggml.cls_token_id"));
  DOPPLER_TRY(view.sep, token_id(file, "tokenizer.ggml.seperator_token_id"));  // GGUF's spelling
  DOPPLER_TRY(view.add_bos, file.get_bool("tokenizer.ggml.add_bos_token"));
  DOPPLER_TRY(view.add_eos, file.get_bool("tokenizer.ggml.add_eos_token"));
  DOPPLER_TRY(view.add_space_prefix, file.get_bool("tokenizer.ggml.add_space_prefix"));
  DOPPLER_TRY(VocabData vocab, vocab_from_gguf(view));
  return make_tokenizer(std::move(vocab));
}

Result<std::unique_ptr<Tokenizer>> tokenizer_from_directory(const std::string& directory) {
  const std::string path = file_in(directory, "tokenizer.json");
  DOPPLER_TRY(const std::string config, optional_file(file_in(directory, "tokenizer_config.json")));
  if (exists(path)) {
    DOPPLER_TRY(const std::string json, read_text_file(path, kMaxTokenizerBytes));
    DOPPLER_TRY(VocabData vocab, vocab_from_tokenizer_json(json, config));
    return make_tokenizer(std::move(vocab));
  }
  for (const char* name : {"tokenizer.model", "spiece.model"}) {
    const std::string model = file_in(directory, name);
    if (!exists(model)) continue;
    DOPPLER_TRY(const std::string bytes, read_text_file(model, kMaxTokenizerBytes));
    DOPPLER_TRY(VocabData vocab, vocab_from_sentencepiece(bytes, config));
    return make_tokenizer(std::move(vocab));
  }
  return fail(
      ErrorCode::kNotFound,
      "[tokenizer] {} or a SentencePiece model (tokenizer.model, spiece.model) wanted, neither is there; "
      "use --prompt-ids",
      path);
}

Result<std::unique_ptr<Tokenizer>> tokenizer_of(const TensorSource& source, const std::string& path) {
  const auto* file = dynamic_cast<const gguf::GgufFile*>(&source);
  return file ? tokenizer_from_gguf(*file) : tokenizer_from_directory(path);
}

Result<ChatTemplate> chat_template_from_gguf(const gguf::GgufFile& file) {
  DOPPLER_TRY(const auto jinja, file.get_string("tokenizer.chat_template"));
  return chat_template_from_jinja(jinja.value_or(""));
}

Result<std::string> chat_template_text(const std::string& directory) {
  DOPPLER_TRY(std::string jinja, optional_file(file_in(directory, "chat_template.jinja")));
  if (!jinja.empty()) return jinja;
  DOPPLER_TRY(const std::string text, optional_file(file_in(directory, "tokenizer_config.json")));
  const Json config = Json::parse(text, nullptr, false);
  if (!config.is_object()) return std::string();
  const auto found = config.find("chat_template");
  return found != config.end() && found->is_string() ? found->get<std::string>() : std::string();
}

Result<ChatTemplate> chat_template_from_directory(const std::string& directory,
                                                  const std::string& manifest_format) {
  DOPPLER_TRY(const std::string jinja, chat_template_text(directory));
  return jinja.empty() ? chat_template_from_name(manifest_format) : chat_template_from_jinja(jinja);
}

}  // namespace doppler
