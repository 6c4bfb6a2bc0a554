#include "cli/runner.h"

#include <vector>

#include "cli/line_reader.h"
#include "cli/progress_bar.h"

namespace doppler::cli {
namespace {

constexpr size_t kMaxPromptBytes = 64u << 20;

Result<std::string> prompt_text(const RunOptions& options) {
  if (options.prompt_file) return read_text_argument(*options.prompt_file, kMaxPromptBytes);
  if (options.prompt) return *options.prompt;
  return fail(ErrorCode::kBadInput,
              "[run] a prompt wanted: \"prompt\", \"prompt_file\" or \"prompt_ids\", got none");
}

}  // namespace

Result<void> Runner::prepare(const RunOptions& options, bool text) {
  DOPPLER_TRY(const SessionOptions session, session_options(options));
  LoadOptions load = load_options(options);
  const std::string model_key = fmt::format("{}\n{}\n{}\n{}\n{}", options.device, options.precision,
                                            options.threads, load.max_chunk, load.expert_memory_bytes);
  const std::string session_key = fmt::format("{}\n{}", options.context, options.kv.value_or(""));
  if (!model_ || model_key != model_key_) {
    session_.reset();
    model_.reset();
    ProgressBar bar;
    load.progress = bar.callback();
    if (!text) load.parts = LoadParts::kWeights;
    DOPPLER_TRY(Model model, Model::load(options.model, load));
    model_ = std::move(model);
    model_key_ = model_key;
  }
  if (!session_ || session_key != session_key_) {
    session_.reset();
    DOPPLER_TRY(Session made, model_->new_session(session));
    session_.emplace(std::move(made));
    session_key_ = session_key;
  }
  return {};
}

Result<Generation> Runner::generate(const RunOptions& options, const GenerateCallbacks& callbacks) {
  GenerateOptions generate = options.generate;
  if (options.prompt_ids) {
    generate.text = false;
    return session_->generate(std::span<const int32_t>(*options.prompt_ids), generate, callbacks);
  }
  DOPPLER_TRY(const std::string text, prompt_text(options));
  if (!options.chat) return session_->generate(text, generate, callbacks);
  std::vector<ChatMessage> messages;
  if (options.system) messages.push_back({"system", *options.system});
  messages.push_back({"user", text});
  return session_->generate(std::span<const ChatMessage>(messages), generate, callbacks);
}

Result<Generation> Runner::run(const RunOptions& options, const GenerateCallbacks& callbacks) {
  const int sources = int{options.prompt.has_value()} + int{options.prompt_file.has_value()} +
                      int{options.prompt_ids.has_value()};
  if (sources != 1)
    return fail(ErrorCode::kBadInput, "[run] one of prompt, prompt_file and prompt_ids wanted, got {}",
                sources);
  if (options.prompt_ids && options.chat)
    return fail(ErrorCode::kBadInput, "[run] chat needs a text, got prompt_ids");
  if (options.system && !options.chat) return fail(ErrorCode::kBadInput, "[run] system needs chat");
  DOPPLER_CHECK_OK(prepare(options, !options.prompt_ids.has_value()));
  auto result = generate(options, callbacks);
  const bool lost =
      result ? result->finish == FinishReason::kError && result->error_code == ErrorCode::kDeviceLost
             : result.error().code == ErrorCode::kDeviceLost;
  if (lost) {
    session_.reset();
    model_.reset();
  }
  return result;
}

}  // namespace doppler::cli
