#include "pipelines/text/generator.h"

#include <algorithm>
#include <chrono>
#include <optional>
#include <string>
#include <utility>

#include "pipelines/text/stop_matcher.h"
#include "sampling/logprob.h"
#include "sampling/sampler.h"

namespace doppler {
namespace {

class Stopwatch {
 public:
  double ms() const {
    return std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - start_).count();
  }

 private:
  std::chrono::steady_clock::time_point start_ = std::chrono::steady_clock::now();
};

Result<void> check_request(const KvCache& kv, const GeneratorModel& model, std::span<const int32_t> ids,
                           const GenerateOptions& options) {
  DOPPLER_CHECK_OK(check_sampler_options(options.sampling));
  for (const std::string& stop : options.stop)
    if (stop.empty()) return fail(ErrorCode::kBadInput, "[generate] a stop text must not be empty");
  if (!options.stop.empty() && !model.tokenizer)
    return fail(ErrorCode::kBadInput, "[generate] stop texts need a text prompt, got prompt ids");
  if (ids.empty())
    return fail(ErrorCode::kBadInput,
                "[generate] a prompt wanted, got an empty one and this model has no beginning-of-text token; "
                "give some text");
  if (ids.size() > kv.capacity())
    return fail(ErrorCode::kBadInput,
                "[generate] prompt has {} tokens, context holds {}; raise --context or shorten the prompt",
                ids.size(), kv.capacity());
  for (size_t i = 0; i < ids.size(); ++i)
    if (ids[i] < 0 || static_cast<uint32_t>(ids[i]) >= model.vocab)
      return fail(ErrorCode::kBadInput, "[generate] prompt ids below {} wanted, number {} is {}", model.vocab,
                  i + 1, ids[i]);
  return {};
}

/// From ids to text that may be shown.
class TextOutput {
 public:
  TextOutput(const GeneratorModel& model, const GenerateOptions& options, const GenerateCallbacks& callbacks,
             std::string& text)
      : decoder_(model.tokenizer ? std::optional<StreamDecoder>(std::in_place, *model.tokenizer,
                                                                DecodeOptions{.skip_special = true})
                                 : std::nullopt),
        stops_(options.stop),
        on_text_(callbacks.on_text),
        text_(text) {}

  /// False: the callback asked to stop.
  bool push(int32_t id) { return !decoder_ || emit(stops_.push(decoder_->push(id))); }

  bool finish() {
    if (!decoder_ || stops_.stopped()) return true;
    return emit(stops_.push(decoder_->finish())) && emit(stops_.finish());
  }

  bool stopped() const { return stops_.stopped(); }

 private:
  bool emit(const std::string& text) {
    if (text.empty()) return true;
    text_ += text;
    return !on_text_ || on_text_(text);
  }

  std::optional<StreamDecoder> decoder_;
  StopMatcher stops_;
  const std::function<bool(std::string_view)>& on_text_;
  std::string& text_;
};

class Loop {
 public:
  Loop(Executor& executor, KvCache& kv, const GeneratorModel& model, const GenerateOptions& options,
       const GenerateCallbacks& callbacks, const std::atomic<bool>* cancel)
      : executor_(executor),
        kv_(kv),
        model_(model),
        options_(options),
        callbacks_(callbacks),
        cancel_(cancel),
        sampler_(options.sampling),
        logits_(model.vocab) {}

  Result<Generation> run(std::span<const int32_t> prompt_ids) {
    out_.prompt_ids.assign(prompt_ids.begin(), prompt_ids.end());
    out_.seed = sampler_.seed();
    out_.timings.prompt_tokens = static_cast<uint32_t>(prompt_ids.size());
    history_ = out_.prompt_ids;
    if (options_.max_tokens == 0) return std::move(out_);  // nothing to compute for no tokens

    DOPPLER_TRY(const bool complete, prefill());
    out_.timings.prompt_ms = watch_.ms();
    if (complete) {
      DOPPLER_CHECK_OK(decode());
    } else {
      out_.finish = FinishReason::kCancelled;
    }
    out_.timings.gen_tokens = static_cast<uint32_t>(out_.ids.size());
    out_.timings.gen_ms = watch_.ms() - out_.timings.prompt_ms;
    return std::move(out_);
  }

 private:
  bool cancelled() const { return cancel_ && cancel_->load(std::memory_order_relaxed); }

  /// False: cancelled between two chunks.
  Result<bool> prefill() {
    const std::span<const int32_t> ids = out_.prompt_ids;
    uint32_t chunk = executor_.max_chunk();
    if (options_.chunk > 0) chunk = std::min(chunk, options_.chunk);
    kv_.truncate(0);
    for (size_t done = 0; done < ids.size();) {
      if (cancelled()) return false;
      const size_t count = std::min<size_t>(chunk, ids.size() - done);
      const bool last = done + count == ids.size();
      DOPPLER_CHECK_OK(executor_.forward(kv_, ids.subspan(done, count),
                                         last ? LogitRows::kLast : LogitRows::kNone,
                                         last ? std::span(logits_) : std::span<float>()));
      done += count;
      if (callbacks_.on_prompt &&
          !callbacks_.on_prompt(static_cast<uint32_t>(done), static_cast<uint32_t>(ids.size())))
        return false;
    }
    return true;
  }

  /// One id from the logits, with its log-probabilities if they are asked for.
  Result<int32_t> next_id() {
    DOPPLER_TRY(const int32_t id, sampler_.sample(logits_, history_));
    if (options_.logprobs) {
      DOPPLER_TRY(StepLogprobs step, step_logprobs(logits_, id, *options_.logprobs));
      out_.logprobs.push_back(std::move(step));
    }
    return id;
  }

  Result<void> decode() {
    TextOutput text(model_, options_, callbacks_, out_.text);
    for (;;) {
      if (cancelled()) return finish(FinishReason::kCancelled, text);
      auto next = next_id();
      if (!next) {
        if (out_.ids.empty()) return forward_error(next);
        return finish_with_error(next.error(), text);
      }
      const int32_t id = *next;
      if (out_.ids.empty()) out_.timings.first_token_ms = watch_.ms();
      out_.ids.push_back(id);
      history_.push_back(id);
      const bool is_end = std::find(model_.end_ids.begin(), model_.end_ids.end(), id) != model_.end_ids.end();
      if (is_end && !options_.ignore_end) return finish(FinishReason::kStop, text);
      if (!text.push(id)) return finish(FinishReason::kCancelled, text);
      if (text.stopped()) return finish(FinishReason::kStop, text);
      if (callbacks_.on_id && !callbacks_.on_id(id)) return finish(FinishReason::kCancelled, text);
      if (out_.ids.size() >= options_.max_tokens || kv_.length() >= kv_.capacity())
        return finish(FinishReason::kLength, text);
      if (auto step = executor_.forward(kv_, std::span(&id, 1), LogitRows::kLast, logits_); !step)
        return finish_with_error(step.error(), text);
    }
  }

  Result<void> finish(FinishReason reason, TextOutput& text) {
    out_.finish = reason;
    const bool shown = text.finish();
    if (text.stopped())
      out_.finish = FinishReason::kStop;  // the last held character completed a stop text
    else if (!shown)
      out_.finish = FinishReason::kCancelled;
    return {};
  }

  Result<void> finish_with_error(const Error& error, TextOutput& text) {
    text.finish();
    out_.finish = FinishReason::kError;
    out_.error = error.message;
    out_.error_code = error.code;
    return {};
  }

  Executor& executor_;
  KvCache& kv_;
  const GeneratorModel& model_;
  const GenerateOptions& options_;
  const GenerateCallbacks& callbacks_;
  const std::atomic<bool>* cancel_;
  Sampler sampler_;
  std::vector<float> logits_;  // [vocab]
  std::vector<int32_t> history_;
  Generation out_;
  Stopwatch watch_;
};

}  // namespace

Result<Generation> generate(Executor& executor, KvCache& kv, const GeneratorModel& model,
                            std::span<const int32_t> prompt_ids, const GenerateOptions& options,
                            const GenerateCallbacks& callbacks, const std::atomic<bool>* cancel) {
  DOPPLER_CHECK_OK(check_request(kv, model, prompt_ids, options));
  return Loop(executor, kv, model, options, callbacks, cancel).run(prompt_ids);
}

}  // namespace doppler
