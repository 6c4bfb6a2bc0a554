// doppler eval
#include <fmt/core.h>

#include <CLI/CLI.hpp>
#include <memory>
#include <nlohmann/json.hpp>

#include "cli/json.h"
#include "cli/line_reader.h"
#include "cli/program.h"
#include "cli/progress_bar.h"
#include "cli/run_options.h"
#include "cli/values.h"
#include "engine/evaluate_model.h"

namespace doppler::cli {
namespace {

constexpr size_t kMaxTextBytes = 256u << 20;

struct EvalCommand {
  RunOptions options;
  std::string file, against;
  uint32_t window = 512, max_windows = 0;
  bool json = false;
};

Result<EvaluateReport> evaluate(const EvalCommand& command) {
  const LoadOptions load = load_options(command.options);
  DOPPLER_TRY(const SessionOptions session, session_options(command.options));
  EvaluateRequest request;
  request.model = command.options.model;
  DOPPLER_TRY(request.text, read_text_argument(command.file, kMaxTextBytes));
  // Loading counts bytes, the run windows: each piece of work has its own bar.
  ProgressBar loading, windows(ProgressUnit::kItems);
  request.backend = {.device = load.device,
                     .precision = load.precision,
                     .threads = load.threads,
                     .max_chunk = load.max_chunk,
                     .progress = loading.callback()};
  request.kv = session.kv;
  request.against_exact = command.against == "exact";
  request.window = command.window;
  request.max_windows = command.max_windows;
  request.chunk = command.options.generate.chunk;
  request.progress = windows.callback();
  return evaluate_model(request);
}

int run(Program& program, const EvalCommand& command) {
  const auto report = evaluate(command);
  if (!report) return fail_with(report.error());
  const EvalResult& result = report->result;
  if (command.json) {
    nlohmann::ordered_json out = {{"perplexity", result.perplexity}};
    if (result.kl_mean) {
      out["kl_mean"] = *result.kl_mean;
      out["kl_max"] = result.kl_max;
      out["perplexity_exact"] = *result.reference_perplexity;
    }
    out["device"] = report->device;
    out["precision"] = command.options.precision;
    out["tokens"] = report->tokens;
    out["windows"] = result.windows;
    out["predictions"] = result.predictions;
    program.out.line(dump(out));
    return kExitOk;
  }
  std::string text = fmt::format(
      "perplexity {:.4f} over {} predictions in {} windows of {} ({} tokens) on {}\n", result.perplexity,
      result.predictions, result.windows, command.window, report->tokens, report->device);
  if (result.kl_mean)
    text += fmt::format("exact {:.4f}; mean KL divergence from exact {:.6f}, largest {:.4f}\n",
                        *result.reference_perplexity, *result.kl_mean, result.kl_max);
  program.out.write(text);
  return kExitOk;
}

}  // namespace

void add_eval_command(CLI::App& app, Program& program) {
  CLI::App* command =
      add_command(app, program, "eval", "Measure perplexity, and the distance from exact precision.",
                  "doppler eval gemma-3-270m --text /usr/share/common-licenses/GPL-3 --against exact");
  auto state = std::make_shared<EvalCommand>();
  command
      ->add_option("MODEL", state->options.model,
                   "a .gguf file, an RDRR directory, a Hugging Face folder or a catalogue name")
      ->required();
  command->add_option("--text", state->file, "the text to predict")->required();
  command->add_option("--against", state->against, "exact: also give the KL divergence from exact precision")
      ->check(CLI::IsMember({"exact"}));
  command->add_option("--window", state->window, "tokens a window, its second half is scored, default 512")
      ->check(CLI::Range(4u, 1u << 20));
  command->add_option("--max-windows", state->max_windows, "stop after N windows, 0: all")
      ->check(CLI::Range(0u, 1u << 30));
  command
      ->add_option("--kv", state->options.kv,
                   "type of the key/value cache; default f16, f32 with --precision exact")
      ->check(CLI::IsMember({"f16", "f32", "q8", "q4"}));
  command->add_option("--chunk", state->options.generate.chunk, "tokens a forward pass, default 512")
      ->check(CLI::Range(1u, 1u << 20));
  add_device_options(*command, state->options);
  command->add_flag("--json", state->json, "print one JSON object");
  command->callback(
      [&program, state] { program.action = [&program, state] { return run(program, *state); }; });
}

}  // namespace doppler::cli
