// The public Session.
#include "engine/state.h"
#include "pipelines/text/generator.h"

namespace doppler {
namespace {

/// What came after `before`.
std::optional<ExpertStats> since(const std::optional<ExpertStats>& before, std::optional<ExpertStats> now) {
  if (!before || !now) return now;
  now->hits -= before->hits;
  now->misses -= before->misses;
  now->prefetched -= before->prefetched;
  now->bytes_loaded -= before->bytes_loaded;
  return now;
}

}  // namespace

Session::Session(std::unique_ptr<SessionState> state) : state_(std::move(state)) {}
Session::Session(Session&&) noexcept = default;
Session& Session::operator=(Session&&) noexcept = default;
Session::~Session() = default;

Result<Generation> Session::generate(std::string_view prompt, const GenerateOptions& options,
                                     const GenerateCallbacks& callbacks) {
  DOPPLER_TRY(const std::vector<int32_t> ids,
              Model(state_->model).encode(prompt, {.add_bos = true, .parse_special = options.parse_special}));
  return generate(std::span<const int32_t>(ids), options, callbacks);
}

Result<Generation> Session::generate(std::span<const ChatMessage> messages, const GenerateOptions& options,
                                     const GenerateCallbacks& callbacks) {
  DOPPLER_TRY(const std::vector<int32_t> ids, Model(state_->model).encode_chat(messages));
  return generate(std::span<const int32_t>(ids), options, callbacks);
}

Result<Generation> Session::generate(std::span<const int32_t> prompt_ids, const GenerateOptions& options,
                                     const GenerateCallbacks& callbacks) {
  ModelState& model = *state_->model;
  GeneratorModel generator{model.info.vocab, model.info.end_ids, nullptr};
  if (options.text) {
    DOPPLER_TRY(generator.tokenizer, model.get_tokenizer());
  }
  const std::lock_guard lock(model.run);
  state_->cancel.store(false);
  const std::optional<ExpertStats> before = model.backend.executor->expert_stats();
  DOPPLER_TRY(Generation out, doppler::generate(*model.backend.executor, *state_->kv, generator, prompt_ids,
                                                options, callbacks, &state_->cancel));
  out.timings.load_ms = model.info.load_ms;
  out.timings.experts = since(before, model.backend.executor->expert_stats());
  return out;
}

void Session::cancel() { state_->cancel.store(true); }

uint32_t Session::context() const { return state_->kv->capacity(); }

uint64_t Session::cache_bytes() const { return state_->kv->size_bytes(); }

}  // namespace doppler
