// The public Model.
#include <algorithm>
#include <chrono>
#include <filesystem>

#include "base/log.h"
#include "engine/state.h"
#include "pipelines/text/text_files.h"
#include "storage/pull.h"

namespace doppler {
namespace {

using Clock = std::chrono::steady_clock;

double ms_since(Clock::time_point start) {
  return std::chrono::duration<double, std::milli>(Clock::now() - start).count();
}

bool is_directory(const std::string& path) {
  std::error_code error;
  return std::filesystem::is_directory(path, error);
}

constexpr uint32_t kDefaultTextIds = 8192;  // of an embedder: its buffers grow with the longest text

const gguf::GgufFile* as_gguf(const ModelState& state) {
  const TensorSource* source = state.model.source ? state.model.source.get() : state.text_source.get();
  return dynamic_cast<const gguf::GgufFile*>(source);
}

}  // namespace

std::string_view version() { return DOPPLER_VERSION; }

Result<const Tokenizer*> ModelState::get_tokenizer() {
  const std::lock_guard lock(text_side);
  if (!tokenizer) {
    const gguf::GgufFile* file = as_gguf(*this);
    DOPPLER_TRY(tokenizer, file ? tokenizer_from_gguf(*file) : tokenizer_from_directory(info.path));
  }
  return tokenizer.get();
}

Result<const ChatTemplate*> ModelState::get_chat() {
  const std::lock_guard lock(text_side);
  if (!chat) {
    const gguf::GgufFile* file = as_gguf(*this);
    DOPPLER_TRY(chat, file ? chat_template_from_gguf(*file)
                           : chat_template_from_directory(info.path, model.config.chat_template_type));
  }
  return &*chat;
}

Result<Model> Model::load(std::string_view name, const LoadOptions& asked) {
  LoadOptions options = asked;
  const Clock::time_point start = Clock::now();
  auto state = std::make_shared<ModelState>();
  DOPPLER_TRY(state->info.path, storage::resolve_or_pull(name, options.progress));
  const std::string& path = state->info.path;
  state->info.name = name;
  state->precision = options.precision;

  if (options.parts == LoadParts::kTokenizer) {
    if (!is_directory(path)) {
      DOPPLER_TRY(state->text_source, gguf::GgufFile::open(path));
    }
    DOPPLER_CHECK_OK(state->get_tokenizer());
    state->info.load_ms = ms_since(start);
    return Model(std::move(state));
  }

  DOPPLER_TRY(state->model, model::open_model(path));
  const model::ModelConfig& config = state->model.config;
  if (!config.name.empty()) state->info.name = config.name;
  state->info.family = model::family_name(config.family);
  state->info.vocab = config.vocab;
  state->info.max_context = config.max_context;
  state->info.end_ids = config.end_ids;
  if (state->model.graph.embedder) {
    const uint32_t limit =
        config.text_limit ? std::min(config.text_limit, config.max_context) : config.max_context;
    options.max_chunk = std::min(limit, options.max_chunk ? options.max_chunk : kDefaultTextIds);
    state->info.embedding_width = state->model.graph.logits.width;
    state->info.max_text_ids = options.max_chunk;
  }
  // A damaged tokenizer is found before weights go to a device.
  if (options.parts == LoadParts::kAll) DOPPLER_CHECK_OK(state->get_tokenizer());
  DOPPLER_TRY(state->backend,
              make_backend(state->model, {.device = options.device,
                                          .precision = options.precision,
                                          .threads = options.threads,
                                          .max_chunk = options.max_chunk ? options.max_chunk : 512,
                                          .expert_memory_bytes = options.expert_memory_bytes,
                                          .progress = options.progress}));
  state->info.device = state->backend.executor->device_name();
  state->info.on_gpu = state->backend.on_gpu;
  state->info.device_reason = state->backend.reason;
  state->info.load_ms = ms_since(start);
  log(LogLevel::kInfo, "[load] {} ({}) on {} in {:.0f} ms", state->info.name, state->info.family,
      state->info.device, state->info.load_ms);
  return Model(std::move(state));
}

const ModelInfo& Model::info() const { return state_->info; }

uint64_t Model::device_bytes() const {
  return state_->backend.executor ? state_->backend.executor->device_bytes() : 0;
}

Result<std::vector<int32_t>> Model::encode(std::string_view text, const TextOptions& options) const {
  DOPPLER_TRY(const Tokenizer* tokenizer, state_->get_tokenizer());
  return tokenizer->encode(text, {.bos = options.add_bos ? BosRule::kModel : BosRule::kNever,
                                  .parse_special = options.parse_special});
}

Result<std::vector<int32_t>> Model::encode_chat(std::span<const ChatMessage> messages) const {
  DOPPLER_TRY(const ChatTemplate* chat, state_->get_chat());
  DOPPLER_TRY(const Tokenizer* tokenizer, state_->get_tokenizer());
  DOPPLER_TRY(const std::vector<ChatPiece> pieces, render_chat(*chat, messages, true));
  std::vector<int32_t> ids;
  bool first = true;
  for (const ChatPiece& piece : pieces) {
    const auto part = tokenizer->encode(
        piece.text, {.bos = first ? BosRule::kModel : BosRule::kNever, .parse_special = piece.parse_special});
    ids.insert(ids.end(), part.begin(), part.end());
    first = false;
  }
  return ids;
}

Result<std::string> Model::decode(std::span<const int32_t> ids, bool special) const {
  DOPPLER_TRY(const Tokenizer* tokenizer, state_->get_tokenizer());
  for (const int32_t id : ids)
    if (id < 0 || id >= tokenizer->vocab_size())
      return fail(ErrorCode::kBadInput, "[decode] token ids below {} wanted, got {}", tokenizer->vocab_size(),
                  id);
  return tokenizer->decode(ids, {.skip_special = !special});
}

Result<std::vector<std::string>> Model::token_texts(std::span<const int32_t> ids) const {
  DOPPLER_TRY(const Tokenizer* tokenizer, state_->get_tokenizer());
  std::vector<std::string> texts;
  texts.reserve(ids.size());
  for (const int32_t id : ids) texts.emplace_back(tokenizer->token_text(id));
  return texts;
}

Result<Session> Model::new_session(const SessionOptions& options) const {
  if (!state_->backend.executor)
    return fail(ErrorCode::kBadInput, "[session] a model with weights wanted, only its tokenizer was loaded");
  if (state_->info.embedding_width != 0)
    return fail(ErrorCode::kBadInput,
                "[session] a model that generates text wanted, {} makes embeddings; use `doppler embed`",
                state_->info.name);
  const uint32_t most = state_->info.max_context;
  if (options.context > most)
    return fail(ErrorCode::kBadInput,
                "[session] a context of {} wanted, the model was made for {}; lower --context",
                options.context, most);
  const KvType kv = options.kv.value_or(state_->precision == Precision::kExact ? KvType::kF32 : KvType::kF16);
  auto session = std::make_unique<SessionState>();
  session->model = state_;
  DOPPLER_TRY(session->kv, state_->backend.executor->make_kv(options.context ? options.context : most, kv));
  return Session(std::move(session));
}

}  // namespace doppler
