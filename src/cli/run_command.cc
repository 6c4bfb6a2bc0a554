// doppler run
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <memory>
#include <nlohmann/json.hpp>

#include "cli/interrupt.h"
#include "cli/json.h"
#include "cli/line_reader.h"
#include "cli/program.h"
#include "cli/run_options.h"
#include "cli/runner.h"
#include "cli/values.h"

namespace doppler::cli {
namespace {

struct RunCommand {
  RunOptions options;
  std::string ids;
  bool json = false, jsonl = false;
};

GenerateCallbacks stop_on_interrupt() {
  GenerateCallbacks callbacks;
  callbacks.on_id = [](int32_t) { return !interrupted(); };
  callbacks.on_prompt = [](uint32_t, uint32_t) { return !interrupted(); };
  return callbacks;
}

int exit_code(const Generation& generation) {
  if (generation.finish == FinishReason::kCancelled && interrupted()) return kExitInterrupted;
  if (generation.finish != FinishReason::kError) return kExitOk;
  report(generation.error);
  return kExitFailed;
}

std::string speed_line(const Generation& generation, const std::string& device) {
  const Timings& t = generation.timings;
  const auto rate = [](double tokens, double ms) { return ms > 0 ? tokens * 1000 / ms : 0.0; };
  // The first token comes with the prompt: gen_ms is the time of the others.
  return fmt::format(
      "[{}] prompt {} tokens, {:.1f} tokens/s; first token {:.0f} ms; generated {} tokens, {:.1f} tokens/s; "
      "{}\n",
      finish_name(generation.finish), t.prompt_tokens, rate(t.prompt_tokens, t.prompt_ms), t.first_token_ms,
      t.gen_tokens, rate(t.gen_tokens > 1 ? t.gen_tokens - 1.0 : 0, t.gen_ms), device);
}

int run_plain(Program& program, const RunOptions& options) {
  GenerateCallbacks callbacks = stop_on_interrupt();
  callbacks.on_text = [&](std::string_view text) { return program.out.write(text); };
  Runner runner;
  const auto generation = runner.run(options, callbacks);
  if (!generation) return fail_with(generation.error());
  if (options.prompt_ids) {
    program.out.line(fmt::format("{}", fmt::join(generation->ids, ",")));
  } else if (program.out.is_terminal()) {
    program.out.write("\n");
  }
  const int code = exit_code(*generation);
  if (code != kExitFailed && program.out.ok())
    fmt::print(stderr, "{}", speed_line(*generation, runner.model().info().device));
  if (program.verbosity > 0 && generation->timings.experts)
    fmt::print(stderr, "{}\n", experts_line(*generation->timings.experts));
  return code;
}

int run_json(Program& program, const RunOptions& options) {
  Runner runner;
  const auto generation = runner.run(options, stop_on_interrupt());
  if (!generation) return fail_with(generation.error());
  program.out.line(dump(generation_json(*generation, options.model, runner.model().info().device)));
  return exit_code(*generation);
}

/// One answer for a line, an error included.
std::string answer(Runner& runner, const RunOptions& defaults, const std::string& line, bool& cancelled) {
  const nlohmann::json request = nlohmann::json::parse(line, nullptr, false);
  if (request.is_discarded()) return dump_error("[jsonl] a JSON object a line wanted, got something else");
  RunOptions options = defaults;
  if (auto applied = apply_json(request, options); !applied) return dump_error(applied.error().message);
  if (options.prompt_file == "-") return dump_error("[jsonl] a file's path wanted as prompt_file, got -");
  const auto generation = runner.run(options, stop_on_interrupt());
  if (!generation) {
    cancelled = generation.error().code == ErrorCode::kCancelled;
    return dump_error(generation.error().message);
  }
  cancelled = generation->finish == FinishReason::kCancelled;
  return dump(generation_json(*generation, options.model, runner.model().info().device));
}

int run_lines(Program& program, const RunOptions& options) {
  Runner runner;
  // A model that cannot be loaded fails the command, not each line.
  if (auto ready = runner.prepare(options, /*text=*/false); !ready) return fail_with(ready.error());
  LineReader lines;
  std::string line;
  for (;;) {
    const auto more = lines.next(line);
    if (!more) {
      if (more.error().code != ErrorCode::kBadInput) return fail_with(more.error());
      if (!program.out.line(dump_error(more.error().message))) return kExitOk;
      continue;
    }
    if (!*more) return kExitOk;
    if (line.find_first_not_of(" \t\r") == std::string::npos) continue;
    bool cancelled = false;
    if (!program.out.line(answer(runner, options, line, cancelled))) return kExitOk;
    if (cancelled || interrupted()) return kExitInterrupted;
  }
}

}  // namespace

void add_run_command(CLI::App& app, Program& program) {
  CLI::App* command = add_command(app, program, "run", "Generate text from a prompt.",
                                  "doppler run gemma-3-270m \"The capital of France is\" --max-tokens 32");
  auto state = std::make_shared<RunCommand>();
  RunOptions& o = state->options;
  command
      ->add_option("MODEL", o.model,
                   "a .gguf file, an RDRR directory, a Hugging Face folder or a catalogue name")
      ->required();
  CLI::Option* prompt = command->add_option("PROMPT", o.prompt, "the text to continue");
  CLI::Option* file =
      command->add_option("--prompt-file", o.prompt_file, "read the prompt from a file; -: stdin");
  CLI::Option* ids =
      command->add_option("--prompt-ids", state->ids, "token ids instead of text, e.g. 1,2,3; prints ids")
          ->check(CLI::Validator([](std::string& text) { return check_ids(text); }, "IDS"));
  CLI::Option* chat = command->add_flag("--chat", o.chat, "put the prompt through the model's chat template");
  command->add_option("--system", o.system, "system message, with --chat");
  command->add_flag("--special,!--no-special", o.generate.parse_special,
                    "prompt text that spells a control token is that token (default, never with --chat)");
  add_generate_options(*command, o);
  add_session_options(*command, o);
  add_device_options(*command, o);
  CLI::Option* json = command->add_flag("--json", state->json, "print one JSON object");
  CLI::Option* jsonl =
      command->add_flag("--stdin-jsonl", state->jsonl,
                        "answer each line of stdin, {\"prompt\": ..} and options, with a JSON object");
  prompt->excludes(file)->excludes(ids)->excludes(jsonl);
  file->excludes(ids)->excludes(jsonl);
  ids->excludes(jsonl)->excludes(chat);
  json->excludes(jsonl);
  command->callback([&program, state, prompt, file, ids] {
    RunOptions& options = state->options;
    if (!state->jsonl && !*prompt && !*file && !*ids)
      throw CLI::RequiredError("PROMPT, --prompt-file, --prompt-ids or --stdin-jsonl");
    if (options.system && !options.chat && !state->jsonl) throw CLI::RequiresError("--system", "--chat");
    if (*ids && !options.generate.stop.empty()) throw CLI::ExcludesError("--prompt-ids", "--stop");
    if (*ids) options.prompt_ids = *parse_ids(state->ids);  // checked above
    program.action = [&program, state] {
      if (state->jsonl) return run_lines(program, state->options);
      return state->json ? run_json(program, state->options) : run_plain(program, state->options);
    };
  });
}

}  // namespace doppler::cli
