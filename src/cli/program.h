#pragma once
// What all commands share.
#include <functional>
#include <string>

#include "cli/output.h"

namespace CLI {
class App;
}

namespace doppler::cli {

struct Program {
  Output out;
  int verbosity = 0;
  std::function<int()> action;  // of the command that was given; returns the exit code
};

/// Adds a command with -v and an example at the end of its help.
CLI::App* add_command(CLI::App& app, Program& program, const std::string& name,
                      const std::string& description, const std::string& example);

void add_run_command(CLI::App& app, Program& program);
void add_tokenize_command(CLI::App& app, Program& program);
void add_embed_command(CLI::App& app, Program& program);
void add_convert_command(CLI::App& app, Program& program);
void add_inspect_command(CLI::App& app, Program& program);
void add_verify_command(CLI::App& app, Program& program);
void add_devices_command(CLI::App& app, Program& program);
void add_bench_command(CLI::App& app, Program& program);
void add_eval_command(CLI::App& app, Program& program);
void add_profile_command(CLI::App& app, Program& program);
void add_plan_command(CLI::App& app, Program& program);
void add_cache_commands(CLI::App& app, Program& program);  // pull, list, rm

/// Parses the command line, runs the command and gives the process's exit code.
int run_program(int argc, char** argv);

}  // namespace doppler::cli
