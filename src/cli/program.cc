#include "cli/program.h"

#include <fmt/core.h>

#include <CLI/CLI.hpp>

#include "base/log.h"
#include "cli/interrupt.h"
#include "doppler/doppler.h"

namespace doppler::cli {

CLI::App* add_command(CLI::App& app, Program& program, const std::string& name,
                      const std::string& description, const std::string& example) {
  CLI::App* command = app.add_subcommand(name, description);
  command->add_flag("-v,--verbose", program.verbosity, "say more on stderr; twice for still more");
  command->footer("Example:\n  " + example);
  return command;
}

int run_program(int argc, char** argv) {
  install_signal_handlers();
  Program program;
  CLI::App app("Runs language and embedding models through WebGPU and on the CPU.", "doppler");
  app.set_version_flag("--version", "doppler " + std::string(version()));
  app.require_subcommand(1);
  app.footer(
      "MODEL is a .gguf file, an RDRR directory, a Hugging Face folder or a name that `doppler list` shows.\n"
      "Example:\n  doppler run smollm2-135m-instruct --chat \"What is a tide?\"");
  add_run_command(app, program);
  add_tokenize_command(app, program);
  add_embed_command(app, program);
  add_convert_command(app, program);
  add_inspect_command(app, program);
  add_verify_command(app, program);
  add_devices_command(app, program);
  add_bench_command(app, program);
  add_eval_command(app, program);
  add_profile_command(app, program);
  add_plan_command(app, program);
  add_cache_commands(app, program);

  try {
    app.parse(argc, argv);
  } catch (const CLI::CallForHelp&) {
    std::string_view command;
    const auto chosen = app.get_subcommands();
    if (!chosen.empty()) command = chosen.front()->get_name();
    program.out.write(command.empty() ? app.help() : chosen.front()->help("doppler"));
    return program.out.finish(kExitOk);
  } catch (const CLI::CallForVersion& text) {
    program.out.line(text.what());
    return program.out.finish(kExitOk);
  } catch (const CLI::ParseError& error) {
    const auto chosen = app.get_subcommands();
    const std::string help =
        chosen.empty() ? "doppler --help" : "doppler " + chosen.front()->get_name() + " --help";
    const bool unknown = chosen.empty() && argc > 1 && argv[1][0] != '-';
    report(fmt::format("[usage] {}; see {}",
                       unknown ? fmt::format("a command wanted, got \"{}\"", argv[1]) : error.what(), help));
    return kExitUsage;
  }
  if (program.verbosity > 0) set_log_level(program.verbosity > 1 ? LogLevel::kDebug : LogLevel::kInfo);
  const int code = program.action();
  return program.out.finish(code == kExitInterrupted ? interrupt_exit_code() : code);
}

}  // namespace doppler::cli
