// doppler convert, inspect, verify, plan: what needs a model's files but not a run.
#include <fmt/core.h>

#include <CLI/CLI.hpp>
#include <filesystem>
#include <memory>
#include <nlohmann/json.hpp>

#include "base/dtype.h"
#include "base/quants.h"
#include "cli/json.h"
#include "cli/program.h"
#include "cli/progress_bar.h"
#include "cli/run_options.h"
#include "cli/values.h"
#include "engine/convert.h"
#include "engine/inspect.h"
#include "engine/plan_model.h"
#include "formats/rdrr/verify.h"
#include "storage/pull.h"

namespace doppler::cli {
namespace {

using Json = nlohmann::ordered_json;

struct ConvertCommand {
  std::string source, directory, hash = "sha256", shard_size = "64MiB";
  ConvertOptions options;
  bool json = false;
};

int run_convert(Program& program, ConvertCommand& command) {
  ProgressBar bar;
  command.options.progress = bar.callback();
  command.options.hash = *hash_kind_from_name(command.hash);  // both checked by the parser
  command.options.shard_size_bytes = *parse_size(command.shard_size);
  const auto source = storage::resolve_or_pull(command.source, bar.callback());
  if (!source) return fail_with(source.error());
  const auto report = convert(*source, command.directory, command.options);
  bar.clear();
  if (!report) return fail_with(report.error());
  if (command.json)
    program.out.line(to_json(*report));
  else
    program.out.write(to_text(*report));
  return kExitOk;
}

int run_inspect(Program& program, const std::string& model, bool tensors, bool json) {
  ProgressBar bar;
  const auto path = storage::resolve_or_pull(model, bar.callback());
  bar.clear();
  if (!path) return fail_with(path.error());
  const auto report = inspect(*path);
  if (!report) return fail_with(report.error());
  if (json)
    program.out.line(to_json(*report, tensors));
  else
    program.out.write(to_text(*report, tensors));
  return kExitOk;
}

int run_verify(Program& program, const std::string& directory, bool json) {
  ProgressBar bar;
  const auto report = rdrr::verify(directory, bar.callback());
  bar.clear();
  if (!report) return fail_with(report.error());
  if (json) {
    Json problems = Json::array();
    for (const rdrr::Problem& problem : report->problems)
      problems.push_back({{"where", problem.where}, {"message", problem.message}});
    program.out.line(dump(Json{{"ok", report->ok()},
                               {"shards", report->shards},
                               {"tensors", report->tensors},
                               {"groups", report->groups},
                               {"bytes", report->bytes},
                               {"hash", report->hash},
                               {"problems", std::move(problems)}}));
  } else if (report->ok()) {
    program.out.line(fmt::format("all well: {} shards, {} tensors, {} hashed with {}", report->shards,
                                 report->tensors, format_bytes(static_cast<double>(report->bytes)),
                                 report->hash));
  }
  if (report->ok()) return kExitOk;
  cli::report(report->summary());
  return kExitFailed;
}

int run_plan(Program& program, const RunOptions& options, uint32_t prompt_tokens, bool json) {
  const LoadOptions load = load_options(options);
  ProgressBar bar;
  const auto report = plan_model(options.model,
                                 {.device = load.device,
                                  .precision = load.precision,
                                  .threads = load.threads,
                                  .max_chunk = load.max_chunk,
                                  .progress = bar.callback()},
                                 prompt_tokens);
  bar.clear();
  if (!report) return fail_with(report.error());
  if (json)
    program.out.line(to_json(*report));
  else
    program.out.write(to_text(*report));
  return kExitOk;
}

}  // namespace

void add_convert_command(CLI::App& app, Program& program) {
  CLI::App* command = add_command(app, program, "convert", "Write a model as an RDRR directory.",
                                  "doppler convert model.gguf model-rdrr --hash blake3");
  auto state = std::make_shared<ConvertCommand>();
  command
      ->add_option("SRC", state->source,
                   "a .gguf file, an RDRR directory, a Hugging Face folder or a catalogue name")
      ->required();
  command->add_option("OUT_DIR", state->directory, "a directory that does not exist or is empty")->required();
  command
      ->add_option(
          "--quant", state->options.quant,
          "how matrices are stored; norms and biases stay as they are:\n"
          "keep: as the source has them, bit for bit (default)\n"
          "f32: 32 bits, packed ones expanded without loss\n"
          "f16, bf16: 16 bits; f16 refuses values beyond 65504\n"
          "q8_0: 8.5 bits, next to no loss\n"
          "q6_k: 6.6 bits, a small loss\n"
          "q5_k_m, q5_k, q5_1, q5_0: 5.5 to 6 bits\n"
          "q4_k_m: 4.5 bits, but 6.6 for the embedding, the head and the matrices that need them most\n"
          "q4_k, q4_1, q4_0: 4.5 to 5 bits\n"
          "Rows that do not fill the 256-value blocks of the k types take q5_0, q5_1 or q8_0 where that is "
          "no larger, which is said.")
      ->check(CLI::Validator(
          [](std::string& text) {
            const auto dtype = dtype_from_name(text);
            const bool known = text == "keep" || (dtype && can_quantize(*dtype));
            return std::string(known ? "" : "keep or a type such as q4_k_m wanted, got \"" + text + "\"");
          },
          "TYPE"));
  command->add_flag("--requantize", state->options.requantize,
                    "pack weights anew that are packed already, although that loses twice");
  command->add_flag("--compat", state->options.compat,
                    "write only types that the original engine's readers know");
  command->add_option("--shard-size", state->shard_size, "bytes a shard, default 64MiB")
      ->check(CLI::Validator([](std::string& text) { return check_size(text); }, "SIZE"));
  command->add_option("--hash", state->hash, "sha256 or blake3")->check(CLI::IsMember({"sha256", "blake3"}));
  command->add_option("--model-id", state->options.model_id, "the manifest's name of the model");
  command->add_option("--threads", state->options.threads, "CPU threads; 0: the cores this process may use")
      ->check(CLI::Range(0u, 1024u));
  command->add_flag("--json", state->json, "print one JSON object");
  command->callback(
      [&program, state] { program.action = [&program, state] { return run_convert(program, *state); }; });
}

void add_inspect_command(CLI::App& app, Program& program) {
  CLI::App* command = add_command(app, program, "inspect", "Show what a model is without running it.",
                                  "doppler inspect gemma-3-270m --tensors");
  struct State {
    std::string model;
    bool tensors = false, json = false;
  };
  auto state = std::make_shared<State>();
  command
      ->add_option("MODEL", state->model,
                   "a .gguf file, an RDRR directory, a Hugging Face folder or a catalogue name")
      ->required();
  command->add_flag("--tensors", state->tensors, "also every tensor");
  command->add_flag("--json", state->json, "print one JSON object");
  command->callback([&program, state] {
    program.action = [&program, state] {
      return run_inspect(program, state->model, state->tensors, state->json);
    };
  });
}

void add_verify_command(CLI::App& app, Program& program) {
  CLI::App* command =
      add_command(app, program, "verify", "Check every hash, size and bound of an RDRR directory.",
                  "doppler verify model-rdrr");
  struct State {
    std::string directory;
    bool json = false;
  };
  auto state = std::make_shared<State>();
  command->add_option("RDRR_DIR", state->directory, "an RDRR directory")->required();
  command->add_flag("--json", state->json, "print one JSON object");
  command->callback([&program, state] {
    program.action = [&program, state] { return run_verify(program, state->directory, state->json); };
  });
}

void add_plan_command(CLI::App& app, Program& program) {
  CLI::App* command =
      add_command(app, program, "plan", "Show what runs for a prompt and for one token, and why.",
                  "doppler plan gemma-3-270m --device lavapipe");
  struct State {
    RunOptions options;
    uint32_t prompt_tokens = 512;
    bool json = false;
  };
  auto state = std::make_shared<State>();
  command
      ->add_option("MODEL", state->options.model,
                   "a .gguf file, an RDRR directory, a Hugging Face folder or a catalogue name")
      ->required();
  command->add_option("--prompt-tokens", state->prompt_tokens, "tokens of the prefill's chunk, default 512")
      ->check(CLI::Range(1u, 1u << 20));
  add_device_options(*command, state->options);
  command->add_flag("--json", state->json, "print one JSON object");
  command->callback([&program, state] {
    program.action = [&program, state] {
      return run_plan(program, state->options, state->prompt_tokens, state->json);
    };
  });
}

}  // namespace doppler::cli
