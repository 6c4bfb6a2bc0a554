// The public Model's embeddings.
#include "engine/state.h"

namespace doppler {

Result<std::vector<float>> Model::embed(std::span<const int32_t> ids) const {
  const ModelInfo& info = state_->info;
  if (!state_->backend.executor)
    return fail(ErrorCode::kBadInput, "[embed] a model with weights wanted, only its tokenizer was loaded");
  if (info.embedding_width == 0)
    return fail(
        ErrorCode::kBadInput,
        "[embed] a model that makes embeddings wanted, {} generates text; use `doppler run`, or a model "
        "with a pooling such as all-minilm-l6-v2",
        info.name);
  if (ids.empty() || ids.size() > info.max_text_ids)
    return fail(ErrorCode::kBadInput, "[embed] 1 to {} token ids wanted, got {}", info.max_text_ids,
                ids.size());
  const std::lock_guard lock(state_->run);
  if (!state_->text_kv) {
    const KvType type = state_->precision == Precision::kExact ? KvType::kF32 : KvType::kF16;
    DOPPLER_TRY(state_->text_kv, state_->backend.executor->make_kv(info.max_text_ids, type));
  }
  state_->text_kv->truncate(0);
  std::vector<float> values(info.embedding_width);
  DOPPLER_CHECK_OK(state_->backend.executor->forward(*state_->text_kv, ids, LogitRows::kLast, values));
  return values;
}

Result<Embedding> Model::embed(std::string_view text) const {
  DOPPLER_TRY(const Tokenizer* tokenizer, state_->get_tokenizer());
  Embedding out;
  out.ids = tokenizer->encode(text, {.bos = BosRule::kModel});
  if (const size_t most = state_->info.max_text_ids; most != 0 && out.ids.size() > most) {
    out.ids = tokenizer->encode(text, {.bos = BosRule::kModel, .max_ids = most});
    out.truncated = true;
  }
  if (out.ids.empty())
    return fail(ErrorCode::kBadInput,
                "[embed] a text that gives token ids wanted, this one gives none and {} adds none",
                state_->info.name);
  DOPPLER_TRY(out.values, embed(std::span<const int32_t>(out.ids)));
  return out;
}

}  // namespace doppler
