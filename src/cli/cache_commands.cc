// doppler pull, list, rm: the local cache.
#include <fmt/core.h>

#include <CLI/CLI.hpp>
#include <memory>
#include <nlohmann/json.hpp>

#include "cli/json.h"
#include "cli/program.h"
#include "cli/progress_bar.h"
#include "storage/cache.h"
#include "storage/pull.h"

namespace doppler::cli {
namespace {

using Json = nlohmann::ordered_json;

struct CacheCommand {
  std::string name;
  bool json = false;
};

int pull(Program& program, const CacheCommand& command) {
  ProgressBar bar;
  const auto path = storage::pull(command.name, bar.callback());
  bar.clear();
  if (!path) return fail_with(path.error());
  program.out.line(command.json ? dump(Json{{"name", command.name}, {"path", *path}}) : *path);
  return kExitOk;
}

int list(Program& program, const CacheCommand& command) {
  const auto models = storage::list_models();
  if (!models) return fail_with(models.error());
  if (command.json) {
    Json all = Json::array();
    for (const storage::CachedModel& model : *models)
      all.push_back({{"name", model.name},
                     {"present", model.present},
                     {"bytes", model.bytes},
                     {"path", model.path},
                     {"catalogue", model.in_catalogue},
                     {"summary", model.summary}});
    program.out.line(dump(Json{{"models", std::move(all)}}));
    return kExitOk;
  }
  size_t width = 4;
  for (const storage::CachedModel& model : *models) width = std::max(width, model.name.size());
  for (const storage::CachedModel& model : *models)
    if (!program.out.line(fmt::format(
            "{:<{}}  {:>10}  {:<9}  {}", model.name, width, format_bytes(static_cast<double>(model.bytes)),
            model.present ? "here" : "not here", model.in_catalogue ? model.summary : model.path)))
      break;
  return kExitOk;
}

int remove(Program& program, const CacheCommand& command) {
  const auto freed = storage::remove_model(command.name);
  if (!freed) return fail_with(freed.error());
  program.out.line(command.json ? dump(Json{{"name", command.name}, {"freed_bytes", *freed}})
                                : fmt::format("{} removed, {} freed", command.name,
                                              format_bytes(static_cast<double>(*freed))));
  return kExitOk;
}

}  // namespace

void add_cache_commands(CLI::App& app, Program& program) {
  const auto add = [&](const char* name, const char* description, const char* example, bool takes_name,
                       int (*run)(Program&, const CacheCommand&)) {
    CLI::App* command = add_command(app, program, name, description, example);
    auto state = std::make_shared<CacheCommand>();
    if (takes_name) command->add_option("NAME", state->name, "a name that `doppler list` shows")->required();
    command->add_flag("--json", state->json, "print one JSON object");
    command->callback(
        [&program, state, run] { program.action = [&program, state, run] { return run(program, *state); }; });
  };
  add("pull", "Download a model into the cache and print its path.", "doppler pull smollm2-135m-instruct",
      true, pull);
  add("list", "Show the models of the catalogue and of the cache.", "doppler list", false, list);
  add("rm", "Remove a model from the cache.", "doppler rm smollm2-135m-instruct", true, remove);
}

}  // namespace doppler::cli
