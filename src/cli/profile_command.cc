// doppler profile
#include <CLI/CLI.hpp>
#include <memory>

#include "cli/program.h"
#include "cli/progress_bar.h"
#include "cli/run_options.h"
#include "engine/profile_model.h"

namespace doppler::cli {
namespace {

struct ProfileCommand {
  RunOptions options;
  uint32_t prompt_tokens = 512, runs = 5;
  bool json = false;
};

Result<ProfileReport> profile(const ProfileCommand& command) {
  const LoadOptions load = load_options(command.options);
  DOPPLER_TRY(const SessionOptions session, session_options(command.options));
  ProgressBar bar;
  ProfileRequest request;
  request.model = command.options.model;
  request.backend = {.device = load.device,
                     .precision = load.precision,
                     .threads = load.threads,
                     .max_chunk = std::max(load.max_chunk, command.prompt_tokens),
                     .progress = bar.callback()};
  request.kv = session.kv;
  request.prompt_tokens = command.prompt_tokens;
  request.runs = command.runs;
  return profile_model(request);
}

int run(Program& program, const ProfileCommand& command) {
  const auto report = profile(command);
  if (!report) return fail_with(report.error());
  if (command.json)
    program.out.line(to_json(*report));
  else
    program.out.write(to_text(*report));
  return kExitOk;
}

}  // namespace

void add_profile_command(CLI::App& app, Program& program) {
  CLI::App* command =
      add_command(app, program, "profile", "Show where the time of a prompt and of one more token goes.",
                  "doppler profile gemma-3-270m --device gpu --prompt-tokens 512");
  auto state = std::make_shared<ProfileCommand>();
  command->add_option("MODEL", state->options.model, "a .gguf file, a folder or a catalogue name")
      ->required();
  command->add_option("--prompt-tokens", state->prompt_tokens, "tokens of the prefill, default 512")
      ->check(CLI::Range(1u, 1u << 16));
  command->add_option("--runs", state->runs, "each step's time is the median of N, default 5")
      ->check(CLI::Range(1u, 1000u));
  command
      ->add_option("--kv", state->options.kv,
                   "type of the key/value cache; default f16, f32 with --precision exact")
      ->check(CLI::IsMember({"f16", "f32", "q8", "q4"}));
  add_device_options(*command, state->options);
  command->add_flag("--json", state->json, "print one JSON object");
  command->callback(
      [&program, state] { program.action = [&program, state] { return run(program, *state); }; });
}

}  // namespace doppler::cli
